/**
 * Texts from outside, made safe to show: characters that command, hide or reorder are written out as escapes, as on
 * terminals and in logs. Otherwise somebody could approve something else than what they read.
 */

/** Characters that are drawn as a blank or as nothing, and are neither white space nor ignorable to Unicode. The same
 * as in `common/readable/unseen.py`, like `SYMBOLS`. */
const UNDRAWN = "\u2800\ufffc\u{13441}\u{13442}\u{16fe4}\u{1d159}";
/** Characters that may be emoji, besides those of the category "other symbols". */
const SYMBOLS = "‼⁉ℹ↔⤴⤵◻-◾〰〽";
const SYMBOL = `(?![${UNDRAWN}])[\\p{So}${SYMBOLS}]`;
/** Matches what makes emoji of symbols: the style of an emoji, and the joiner of two. */
const MAKES_EMOJI = `(?<=${SYMBOL}|[0-9#*](?=\ufe0f\u20e3))\ufe0f|(?<=${SYMBOL}[\u{1f3fb}-\u{1f3ff}\ufe0f]?)\u200d(?=${SYMBOL})`;
/** Matches characters that nobody sees, except those that shown texts need: line ends, tabs and what makes emoji. Other
 * blanks stay, unlike on terminals: numbers have them in some languages. */
const UNSEEN = new RegExp(
  `(?=[\\p{C}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}${UNDRAWN}])(?![\\n\\t]|${MAKES_EMOJI})[^]`, "gu");
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

export function shown(text) {
  return text.replace(UNSEEN, written);
}

/** Return such a text as one line for a canvas, shortened if it is long. */
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
