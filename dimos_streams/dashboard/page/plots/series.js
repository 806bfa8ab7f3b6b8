/** What can be plotted: values of open calls, of robots and of topics. Free of the DOM. */

const MAX_CHARTS = 3;
const RATES_OF = "Rates of topics";
const MAX_LINES = 6;
/** Kinds of topics whose rates are shown unless somebody chooses: what robots see and where they are. */
const SENSED = new Set(["picture", "detections", "scan", "odometry"]);
const UNITS = { m: "m", deg: "°", s: "s", hz: "Hz", mps: "m/s", radps: "rad/s", percent: "%", pct: "%", kg: "kg", v: "V", a: "A", c: "°C" };
const NAMED = { speed: "m/s", velocity: "m/s", battery: "%" };

/**
 * Something that changes over time. `group` is what it belongs to, `chart` those that share an axis.
 * @typedef {{name: string, label: string, group: string, chart: string, title: string, unit: string, utime: number,
 *   isShown: boolean}} Series
 * `utime` is when the call was asked for that it is of, else 0; `isShown` whether it is shown unless somebody chooses.
 */

/**
 * The values now.
 * @param {object|null} state the monitor's snapshot
 * @param {Record<string, number>} rates of topics, Hz
 * @param {Map<string, number>} numbers by topic: speeds of robots by their odometry's, and numbers that are sent as such
 * @param {string} robot a namespace, empty for all
 * @param {{topic: string, kind: string}[]} topics
 * @returns {{series: Series, value: number}[]}
 */
export function valuesNow(state, rates, numbers, robot, topics) {
  const found = [];
  const add = (series, value) => Number.isFinite(value) && found.push({ series, value });
  for (const call of state?.calls ?? []) {
    if (!isOf(call.module, robot)) continue;
    for (const [field, value] of Object.entries(call.progress ?? {})) {
      if (typeof value === "number") add(ofCall(call, field), value);
    }
  }
  for (const [name, { battery }] of Object.entries(state?.robots ?? {})) {
    if ((robot === "" || name === robot) && battery !== null) add(ofRobot(name, "battery", "%"), battery * 100);
  }
  for (const [topic, value] of numbers) add(topic.startsWith("speed ") ? ofRobot(topic.slice(6), "speed", "m/s") : ofNumber(topic), value);
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
  const { title, unit } = titleOf(field);
  return { name: `call ${id} ${field}`, label: `${skill} ${title}`, group: skill, chart: `${title} ${unit}`, title, unit, utime, isShown: true };
}

function ofRobot(name, title, unit) {
  return { name: `${title} ${name}`, label: name ? `${name} ${title}` : title, group: "Robots", chart: `${title} ${unit}`, title, unit, utime: 0, isShown: true };
}

function ofNumber(topic) {
  return { name: `number ${topic}`, label: topic, group: "Numbers", chart: topic, title: topic, unit: "", utime: 0, isShown: true };
}

function ofRate(topic, isShown) {
  return { name: `rate ${topic}`, label: topic, group: RATES_OF, chart: "rates Hz", title: "rates of topics", unit: "Hz", utime: 0, isShown };
}

/** `distance_m` → distance in m. */
export function titleOf(field) {
  const at = field.lastIndexOf("_");
  const unit = at > 0 && UNITS[field.slice(at + 1)];
  const title = (unit ? field.slice(0, at) : field).replaceAll("_", " ");
  return { title, unit: unit || NAMED[field] || "" };
}

/**
 * What is shown unless somebody chooses: the fields of the newest call that has any, and of calls that share their
 * charts; else how fast the robots are, and their batteries; else how often topics come.
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

/** The chosen ones by the charts that they share, in the order in which they were chosen. */
export function chartsOf(known, chosen) {
  const charts = new Map();
  const byName = new Map(known.map((series) => [series.name, series]));
  for (const series of chosen.map((name) => byName.get(name)).filter(Boolean)) {
    if (!charts.has(series.chart)) charts.set(series.chart, []);
    charts.get(series.chart).push(series);
  }
  return [...charts.values()];
}

/** A value as it is read. */
export function valueText(value, unit) {
  if (value === null) return "–";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${unit ? ` ${unit}` : ""}`;
}
