/** Texts about whether robots stand still, by what their velocity gates have confirmed. Only gates know. */

import { namespaceOf } from "./format.js";

/** Reasons why a robot may still move, by the kind of problem. */
const PROBLEMS = {
  silent: "it does not answer", deaf: "it does not listen to such orders", not_holding: "it has not obeyed yet",
  moving: "something still drives it", missing: "it has nothing that could confirm it",
};
/** Matches the gates that hold robots, as reports for terminals and logs name them. */
const HELD_BY = /(^|, |; )(the robot (?:is|was) )?held by ([\w/.-]+(?:, [\w/.-]+)*)(?=$|;)/;

/**
 * @typedef {{held: string[], not_held: {gate: string, problem: string, text: string}[]}} Hold by the names of gates
 * @param {Hold} hold @returns {{text: string, isGood: boolean}[]}
 */
export function heldLines(hold) {
  const lines = hold.held.length > 0 ? [{ text: `held: ${standText(hold.held)}`, isGood: true }] : [];
  for (const { gate, problem, text } of hold.not_held) {
    const robot = problem === "missing" ? gate : robotOf(gate);
    lines.push({ text: `NOT confirmed that ${robot} stands: ${PROBLEMS[problem] ?? text}`, isGood: false });
  }
  return lines.length > 0 ? lines : [{ text: "NOT confirmed that a robot stands: nobody has said so", isGood: false }];
}

/** Return what each gate has reported, one on each line. @param {Hold} hold */
export function heldBy(hold) {
  return [...hold.held.map((gate) => `confirmed by ${gate}`), ...hold.not_held.map(({ gate, text }) => `${gate}: ${text}`)].join("\n");
}

/** Return a report that names robots instead of gates. */
export function withoutGates(text) {
  return text.replace(HELD_BY, (_, before, isStated, gates) => before + standText(gates.split(", "), Boolean(isStated)));
}

/** @param {string[]} gates @param {boolean} isOver whether it is told of a moment that may be long ago */
function standText(gates, isOver = false) {
  const names = [...new Set(gates.map(robotOf))];
  const [one, many] = isOver ? ["stood", "stood"] : ["stands", "stand"];
  return names.length === 1 ? `${names[0]} ${one} still` : `${names.slice(0, -1).join(", ")} and ${names.at(-1)} ${many} still`;
}

function robotOf(gate) {
  return namespaceOf(gate) || "the robot";
}
