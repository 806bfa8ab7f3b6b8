/** Texts that an agent repeats word for word: a skill's name, and what its call has reported. */

import { reportOf } from "./report.js";

/** Maximum lines and characters of a report that are compared: nobody repeats a longer one word for word. */
const MAX_LINES = 20;
const MAX_TEXT = 4000;
const CUT = "…";
/** Echoes by lists of entries: several views ask for the same, and a changed conversation is another list. */
const OF_LISTS = new WeakMap();

/** The lines with which a model only repeats what calls have reported and their cards show. */
export class Echoes {
  #lines = new Set();

  /** @param {object[]} entries of a conversation; the same list has the same */
  static of(entries) {
    const known = OF_LISTS.get(entries);
    if (known) return known;
    const made = new Echoes();
    for (const entry of entries) made.add(entry);
    OF_LISTS.set(entries, made);
    return made;
  }

  /** Note an entry of a conversation, if it is about a call. */
  add({ skill, text }) {
    if (!skill) return;
    const { text: reported, state: outcome } = reportOf(text);
    const words = reported.slice(0, MAX_TEXT);
    for (const said of [words.replaceAll(/\s+/g, " ").trim(), ...words.split("\n", MAX_LINES)]) {
      for (const how of ["", `: ${outcome}`, " is done", ` has ended (${outcome.replace("_", " ")})`]) this.#lines.add(`${skill}${how}: ${said}`);
    }
  }

  /** Return whether a text consists of such lines. */
  has(text) {
    return text !== "" && text.split("\n").every((line) => this.#isOne(line));
  }

  /** Return whether a text that is being written consists of such lines so far. */
  begins(text) {
    const lines = text.split("\n");
    const last = lines.pop();
    return lines.every((line) => this.#isOne(line)) && this.#isBegun(last);
  }

  #isOne(line) {
    return this.#lines.has(line) || (line.endsWith(CUT) && this.#isBegun(line.slice(0, -CUT.length)));
  }

  #isBegun(beginning) {
    return [...this.#lines].some((line) => line.startsWith(beginning));
  }
}
