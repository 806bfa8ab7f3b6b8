/** The series that can be plotted: values of open calls, of robots and of topics. No DOM. */

import { measureOf } from "../format.js";

const MAX_CHARTS = 3;
const RATES_OF = "Rates of topics";
const MAX_LINES = 6;
/** Maximum magnitude of a value: a larger one is no measurement, and uPlot finds no scale for it. */
const LARGEST = 1e15;
/** Kinds of topics whose rates are shown by default: what robots see and where they are. */
const SENSED = new Set(["picture", "detections", "scan", "odometry"]);
const SPEED = measureOf("speed");
const BATTERY = { title: "battery", unit: "%", decimals: 0 };
const RATE = { title: "rates of topics", unit: "Hz", decimals: 1 };

/**
 * A value over time. `group` is the heading under which it can be chosen; series of one `chart` share an axis.
 * @typedef {{name: string, label: string, group: string, chart: string, title: string, unit: string,
 *   decimals: number|null, utime: number, isShown: boolean}} Series
 * `utime` is the time at which its call was requested, 0 if it has none; `isShown` says if it can be a default.
 */

/**
 * Return the present values.
 * @param {Record<string, number>} rates of topics, Hz
 * @param {Map<string, {kind: string, robot: string, value: number}>} numbers by topic: speeds of robots as their odometry
 *   has them, and numbers that are sent as such
 * @param {{topic: string, kind: string}[]} topics
 * @returns {{series: Series, value: number}[]}
 */
export function valuesNow(state, rates, numbers, robot, topics) {
  const found = [];
  const add = (series, value) => Math.abs(value) <= LARGEST && found.push({ series, value });
  for (const call of state?.calls ?? []) {
    if (!isOf(call.module, robot)) continue;
    for (const [field, value] of Object.entries(call.progress ?? {})) {
      if (typeof value === "number") add(ofCall(call, field), value);
    }
  }
  for (const [name, { battery }] of Object.entries(state?.robots ?? {})) {
    if ((robot === "" || name === robot) && battery !== null) add(ofRobot(name, name, BATTERY), battery * 100);
  }
  const odometries = [...numbers].filter(([, { kind }]) => kind === "odometry");
  for (const [topic, { value, robot: whose }] of odometries) {
    const isAlone = odometries.every(([other, each]) => other === topic || each.robot !== whose);
    add(ofRobot(topic, isAlone ? whose : topic, SPEED), value);
  }
  for (const [topic, { kind, value }] of numbers) if (kind === "number") add(ofNumber(topic), value);
  const kinds = new Map(topics.map(({ topic, kind }) => [topic, kind]));
  for (const [topic, hz] of Object.entries(rates ?? {})) {
    if (robot === "" || topic.startsWith(`/${robot}/`)) add(ofRate(topic, SENSED.has(kinds.get(topic))), hz);
  }
  return found;
}

function isOf(module, robot) {
  return robot === "" || module.startsWith(`${robot}/`);
}

function ofCall({ call_id: id, skill, requested_utime: utime }, field) {
  const measure = measureOf(field);
  return { name: `call ${id} ${field}`, label: `${skill} ${measure.title}`, group: skill, ...onAxis(measure), utime, isShown: true };
}

/** @param {string} source what it is measured by @param {string} whose for people, empty where there is nobody else */
function ofRobot(source, whose, measure) {
  const label = whose ? `${whose} ${measure.title}` : measure.title;
  return { name: `${measure.title} ${source}`, label, group: "Robots", ...onAxis(measure), utime: 0, isShown: true };
}

function ofNumber(topic) {
  return { name: `number ${topic}`, label: topic, group: "Numbers", ...onAxis({ ...measureOf(topic), title: topic }), utime: 0, isShown: true };
}

function ofRate(topic, isShown) {
  return { name: `rate ${topic}`, label: topic, group: RATES_OF, ...onAxis(RATE), utime: 0, isShown };
}

/** Return a measure with its chart, which is the same for equal titles and units. */
function onAxis(measure) {
  return { ...measure, chart: `${measure.title} ${measure.unit}` };
}

/**
 * Return the series that are shown by default, in a few charts: those of the newest call that has any, then those of
 * robots, numbers and rates of topics. Each chart has the other series that share it, too.
 * @param {Iterable<Series>} known
 * @returns {string[]} names
 */
export function defaults(known) {
  const all = [...known].filter(({ isShown }) => isShown);
  const newest = Math.max(...all.map(({ utime }) => utime));
  const isOfNewest = ({ utime }) => utime > 0 && utime === newest;
  const ordered = [isOfNewest, ({ group }) => group === "Robots", ({ group }) => group === "Numbers", ({ group }) => group === RATES_OF];
  const charts = [...new Set(ordered.flatMap((isIn) => all.filter(isIn).map(({ chart }) => chart)))].slice(0, MAX_CHARTS);
  return charts.flatMap((chart) => all.filter((series) => series.chart === chart).slice(0, MAX_LINES).map(({ name }) => name));
}

/** Return the chosen series grouped by the charts that they share, in the order in which they were chosen. */
export function chartsOf(known, chosen) {
  const charts = new Map();
  const byName = new Map(known.map((series) => [series.name, series]));
  for (const series of chosen.map((name) => byName.get(name)).filter(Boolean)) {
    if (!charts.has(series.chart)) charts.set(series.chart, []);
    charts.get(series.chart).push(series);
  }
  return [...charts.values()];
}
