/** How a run is reached: its sockets, its token in requests, and the pauses between attempts. */

const RETRY_MS = { first: 500, longest: 10_000 };
const SUBPROTOCOL = "dimos-streams";

/**
 * Open a socket. It has no headers of the page's: the token is among its subprotocols, since servers and proxies write URLs
 * into their logs. @param {string} token empty for none
 */
export function openSocket(path, token = "") {
  const url = new URL(path, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  return new WebSocket(url, token ? [SUBPROTOCOL, `bearer.${inBase64Url(token)}`] : [SUBPROTOCOL]);
}

function inBase64Url(text) {
  const bytes = String.fromCharCode(...new TextEncoder().encode(text));
  return btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Return the headers that carry the token. @param {string} token empty for none */
export function authorization(token) {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** Return the pause after so many attempts that failed, in ms. */
export function pauseMs(failed) {
  return Math.min(RETRY_MS.longest, RETRY_MS.first * 2 ** (failed - 1));
}
