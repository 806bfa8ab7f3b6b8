/** The layout of the timeline: calls in rows, families together, robots one below the other, leases below all. */

import { namespaceOf } from "../format.js";
import { parentsOf, skillOf } from "../calls/families.js";

/** @typedef {import("./calls.js").Call} Call */

/**
 * @typedef {{call: Call, row: number, depth: number}} Bar
 * @typedef {{from: number, to: number, row: number, rows: number}} Family a mission or call that others belong to, and these
 * @typedef {{name: string, row: number, rows: number}} Section a robot, named where there are several
 * @typedef {{resource: string, holds: {call: Call, from: number, to: number}[]}} Lane
 * @typedef {{bars: Bar[], byId: Map<string, Bar>, families: Family[], sections: Section[], lanes: Lane[], rows: number,
 *   parents: Map<string, string>}} Layout
 * Times are in µs, Infinity for the end of what goes on. Bars are ordered from top to bottom, then by time.
 */

/** @param {Map<string, string>} [missionOf] missions by ids of calls, as far as agents say @returns {Layout} */
export function laidOut(calls, missionOf) {
  const inOrder = calls.toSorted(before);
  const parents = parentsOf(inOrder, missionOf);
  const children = Map.groupBy(inOrder.filter(({ id }) => parents.has(id)), ({ id }) => parents.get(id));
  const robots = Map.groupBy(inOrder.filter(({ id }) => !parents.has(id)), ({ module }) => namespaceOf(module));
  const names = [...robots.keys()].sort();
  const bars = [];
  const families = [];
  const sections = [];
  let rows = 0;
  for (const name of names) {
    const heading = names.length > 1 ? 1 : 0;
    const blocks = robots.get(name).map((call) => blockOf(call, children));
    const taken = placed(blocks);
    for (const block of blocks) spread(block, rows + heading + block.row, 0, bars, families);
    sections.push({ name, row: rows, rows: taken + heading });
    rows += taken + heading;
  }
  bars.sort((one, other) => one.row - other.row || before(one.call, other.call));
  const byId = new Map(bars.map((bar) => [bar.call.id, bar]));
  return { bars, byId, families, sections, lanes: lanesOf(inOrder, parents), rows, parents };
}

/** Return a call and all that belongs to it as a block, a rectangle in time and rows. Its own row is the first. */
function blockOf(call, children) {
  const below = (children.get(call.id) ?? []).map((child) => blockOf(child, children));
  const rows = 1 + placed(below);
  const from = below.reduce((least, block) => Math.min(least, block.from), call.begin);
  const to = below.reduce((most, block) => Math.max(most, block.to), call.end ?? Infinity);
  return { call, below, rows, from, to, row: 0 };
}

/**
 * Give each block its first row, the topmost where it has room, and return the number of rows. A block is not moved by
 * those that begin later, so that bars stay where they are while time goes on.
 */
function placed(blocks) {
  const ends = [];
  for (const block of blocks) {
    let row = 0;
    while (ends.slice(row, row + block.rows).some((end) => end > block.from)) row += 1;
    block.row = row;
    for (let each = row; each < row + block.rows; each += 1) ends[each] = block.to;
    for (let each = 0; each < row; each += 1) ends[each] ??= -Infinity;
  }
  return ends.length;
}

function spread(block, row, depth, bars, families) {
  bars.push({ call: block.call, row, depth });
  if (block.below.length > 0) families.push({ from: block.from, to: block.to, row, rows: block.rows });
  for (const each of block.below) spread(each, row + 1 + each.row, depth + 1, bars, families);
}

/** Return the lanes of leases. Children use what their parent holds, so a family shows only its topmost holder. */
function lanesOf(calls, parents) {
  const byId = new Map(calls.map((call) => [call.id, call]));
  const lanes = new Map();
  for (const call of calls) {
    if (call.state === "rejected" || call.state === "asked") continue; // it held nothing
    for (const resource of call.resources) {
      if (isHeldAbove(call, resource, parents, byId)) continue;
      if (!lanes.has(resource)) lanes.set(resource, []);
      lanes.get(resource).push({ call, from: call.begin, to: call.end ?? Infinity });
    }
  }
  return [...lanes].sort(([one], [other]) => (one < other ? -1 : 1)).map(([resource, holds]) => ({ resource, holds }));
}

function isHeldAbove(call, resource, parents, byId) {
  for (let id = parents.get(call.id); id; id = parents.get(id)) {
    if (byId.get(id)?.resources.includes(resource)) return true;
  }
  return false;
}

function before(one, other) {
  return one.begin - other.begin || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0);
}

/**
 * Return the times in which agents were paused, each from the end of a `pause` on. The last may go on.
 * @param {Iterable<Call>} calls @param {(agent: string) => boolean} isPaused says so of agents now
 * @typedef {{robot: string|null, released?: string[], from: number, to: number|null, text: string, tone: string}} Band on
 *   every robot where that is null, but not on those that were released
 * @returns {Band[]}
 */
export function pausesOf(calls, isPaused) {
  const orders = [...calls].filter((call) => /^(pause|resume|step)$/.test(skillOf(call)) && call.arguments.mode !== "off" && call.state === "completed");
  const bands = [];
  for (const [agent, given] of Map.groupBy(orders.sort(before), ({ module }) => module)) {
    let from = null;
    const add = (to) => bands.push({ robot: namespaceOf(agent), from, to, text: "paused", tone: "warn" });
    for (const call of given) {
      if (skillOf(call) === "pause") from ??= call.end;
      else if (from !== null) {
        add(call.begin);
        from = null;
      }
    }
    if (from !== null && isPaused(agent)) add(null);
  }
  return bands;
}

/** Return the next bar in the direction of an arrow key, null if there is none.
 * @param {Layout} layout @param {string|null} id where one is @param {"left"|"right"|"up"|"down"} way */
export function neighbour(layout, id, way) {
  const here = id === null ? null : layout.byId.get(id);
  if (!here) return layout.bars.reduce((newest, bar) => (!newest || bar.call.begin > newest.call.begin ? bar : newest), null);
  if (way === "left" || way === "right") {
    const inTime = layout.bars.toSorted((one, other) => before(one.call, other.call));
    return inTime[inTime.indexOf(here) + (way === "right" ? 1 : -1)] ?? null;
  }
  const rows = layout.bars.filter(({ row }) => (way === "up" ? row < here.row : row > here.row));
  const next = rows.reduce((best, { row }) => (best === null || Math.abs(row - here.row) < Math.abs(best - here.row) ? row : best), null);
  const apart = ({ call }) => Math.max(0, call.begin - (here.call.end ?? Infinity), here.call.begin - (call.end ?? Infinity))
    || Math.abs(call.begin - here.call.begin) / 1e9;
  return rows.filter(({ row }) => row === next).reduce((best, bar) => (!best || apart(bar) < apart(best) ? bar : best), null);
}
