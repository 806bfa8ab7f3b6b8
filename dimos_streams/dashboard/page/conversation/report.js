/** Reports of skills, as an agent writes them down for its model, taken apart for people. */

const HEAD = /^\[[^\],]+, call [^\],]+, (\w+)\] /;
/** Matches the answer to a call that did not end as its skill meant it to. */
const ENDED = /^(cancelled|timed_out|lost|rejected): /;
const DATA = /^(?:data|result): (?=[[{"])/;
const GOES_ON = /^\(Call \S+ goes on; what follows will be reported\.\)$/;

/**
 * @typedef {{text: string, state: string, data: unknown}} Report
 * `state` is that of the call after it, empty if that is not said; `data` is JSON, a text if it was cut, or null.
 */

/** @param {string} written @returns {Report} */
export function reportOf(written) {
  const head = written.match(HEAD);
  const ended = head ? null : written.match(ENDED);
  const lines = written.slice((head ?? ended)?.[0].length ?? 0).split("\n");
  const place = lines.findIndex((line) => DATA.test(line));
  const data = place < 0 ? null : parsed(lines[place].replace(DATA, ""));
  const text = lines.filter((line, index) => index !== place && !GOES_ON.test(line)).join("\n").trim();
  const goesOn = lines.some((line) => GOES_ON.test(line));
  const state = head && !["open", "update"].includes(head[1]) ? head[1] : goesOn || head ? "open" : ended?.[1] ?? "";
  const whole = place < 0 && /^[{[]/.test(text) ? parsed(text) : null;
  return whole !== null && typeof whole === "object" ? { text: "", state, data: whole } : { text, state, data };
}

function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    return json; // it was cut
  }
}

/** Return the name of the picture that a call has taken, by its result; null if there is none. */
export function pictureOf(result) {
  const path = result?.picture;
  return typeof path === "string" ? path.slice(path.lastIndexOf("/") + 1) : null;
}
