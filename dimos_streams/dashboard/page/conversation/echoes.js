/** What an agent passes on word for word: a skill's name, and what its call has reported. */

import { reportOf } from "./report.js";

/** Of a report so many lines and letters are looked at: what is longer nobody passes on word for word. */
const MAX_LINES = 20;
const MAX_TEXT = 4000;
const CUT = "…";
/** A conversation that goes on is another list; of one several views ask. */
const OF_LISTS = new WeakMap();

/** The lines with which a model only repeats what calls have reported, which their cards say. */
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

  /** Whether a text says nothing else. */
  has(text) {
    return text !== "" && text.split("\n").every((line) => this.#isOne(line));
  }

  /** Whether a text that is being written says nothing else so far. */
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
