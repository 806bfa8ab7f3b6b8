/**
 * Texts from outside, made safe to show: characters that command, hide or reorder are written out as escapes, as on
 * terminals and in logs. Otherwise somebody could approve something else than what they read.
 */

/** Matches invisible characters, except those that shown texts need: line ends, tabs and the joiner of emoji. */
const UNSEEN = /(?![\n\t\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
/** Maximum length of a text on a canvas, in characters: more has no room, and the browser would measure all of it. */
const DRAWN = 300;

/** Return the beginning of a text, at most so long and with no half of a character at its end. */
export function beginning(text, length) {
  return text.slice(0, Math.max(0, length)).replace(/[\ud800-\udbff]$/, "");
}

/** Return the text, or its beginning and "…" if it is longer than that. */
export function clipped(text, length = 300) {
  return text.length > length ? `${beginning(text, length)}…` : text;
}

/** @param {string} text */
export function shown(text) {
  return text.replace(UNSEEN, written);
}

/** Return such a text as one line for a canvas, shortened if it is long. @param {string} text */
export function drawn(text) {
  const line = shown(clipped(text, DRAWN));
  return line.replaceAll(/[\n\t]/g, " ");
}

/** Return a value as JSON that writes such characters as JSON escapes, which mean the same. @param {unknown} value */
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
