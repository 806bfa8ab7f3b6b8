/** How a run is reached: the URLs of its sockets, its token in requests, and the pauses between attempts. */

const RETRY_MS = { first: 500, longest: 10_000 };

/** Return a socket's URL. A WebSocket has no headers: the token is in there. @param {string} token empty for none */
export function socketUrl(path, token = "") {
  const url = new URL(path, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  if (token) url.searchParams.set("token", token);
  return url;
}

/** Return the headers that carry the token. @param {string} token empty for none */
export function authorization(token) {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** Return the pause after so many attempts that failed, in ms. */
export function pauseMs(failed) {
  return Math.min(RETRY_MS.longest, RETRY_MS.first * 2 ** (failed - 1));
}
