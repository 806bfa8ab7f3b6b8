/**
 * Texts from outside as they are shown: what commands, hides or reorders is written out, as on terminals and in logs. Else
 * what somebody approves could read otherwise than it is.
 */

/** Of these, line ends, tabs and what joins emoji are needed in what is shown. */
const UNSEEN = /(?![\n\t\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** So much of a text can have room on a canvas, where the browser measures all of it. */
const DRAWN = 300;

/** @param {string} text */
export function shown(text) {
  return text.replace(UNSEEN, written);
}

/** The same on a line, of what is long the beginning: for canvases. @param {string} text */
export function drawn(text) {
  const line = shown(text.length > DRAWN ? `${text.slice(0, DRAWN)}…` : text);
  return line.replaceAll(/[\n\t]/g, " ");
}

/** JSON in which the same is written out by JSON's own escapes: it means the same. @param {unknown} value */
export function shownJson(value) {
  return JSON.stringify(value, null, 2).replace(UNSEEN, (unseen) =>
    [...Array(unseen.length).keys()].map((place) => `\\u${hex(unseen.charCodeAt(place), 4)}`).join(""));
}

function written(unseen) {
  const code = unseen.codePointAt(0);
  if (code < 0x100) return `\\x${hex(code, 2)}`;
  return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

function hex(code, digits) {
  return code.toString(16).padStart(digits, "0");
}
