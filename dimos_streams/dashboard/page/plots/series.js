/** What can be plotted: values of open calls, of robots and of topics. Free of the DOM. */

const MAX_CHARTS = 3;
const UNITS = { m: "m", deg: "°", s: "s", hz: "Hz", mps: "m/s", radps: "rad/s", percent: "%", pct: "%", kg: "kg", v: "V", a: "A", c: "°C" };
const NAMED = { speed: "m/s", velocity: "m/s", battery: "%" };

/**
 * Something that changes over time. `group` is what it belongs to, `chart` those that share an axis.
 * @typedef {{name: string, label: string, group: string, chart: string, title: string, unit: string, utime: number}} Series
 */

/**
 * The values now.
 * @param {object|null} state the monitor's snapshot
 * @param {Record<string, number>} rates of topics, Hz
 * @param {Map<string, number>} numbers by topic: speeds of robots by their odometry's, and numbers that are sent as such
 * @param {string} robot a namespace, empty for all
 * @returns {{series: Series, value: number}[]}
 */
export function valuesNow(state, rates, numbers, robot) {
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
  for (const [topic, hz] of Object.entries(rates ?? {})) {
    if (robot === "" || topic.startsWith(`/${robot}/`)) add(ofRate(topic), hz);
  }
  return found;
}

function isOf(module, robot) {
  return robot === "" || module.startsWith(`${robot}/`);
}

function ofCall({ call_id: id, skill, requested_utime: utime }, field) {
  const { title, unit } = titleOf(field);
  return { name: `call ${id} ${field}`, label: `${skill} ${title}`, group: skill, chart: `${title} ${unit}`, title, unit, utime };
}

function ofRobot(name, title, unit) {
  return { name: `${title} ${name}`, label: name ? `${name} ${title}` : title, group: "Robots", chart: `${title} ${unit}`, title, unit, utime: 0 };
}

function ofNumber(topic) {
  return { name: `number ${topic}`, label: topic, group: "Numbers", chart: topic, title: topic, unit: "", utime: 0 };
}

function ofRate(topic) {
  return { name: `rate ${topic}`, label: topic, group: "Rates of topics", chart: "rates Hz", title: "rates of topics", unit: "Hz", utime: 0 };
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
  const all = [...known];
  const ofCalls = all.filter(({ utime }) => utime > 0);
  const newest = Math.max(...ofCalls.map(({ utime }) => utime));
  const fields = ofCalls.filter(({ utime }) => utime === newest).map(({ chart }) => chart);
  const robots = all.filter(({ group }) => group === "Robots").map(({ chart }) => chart);
  const rates = all.filter(({ group }) => group === "Rates of topics").map(({ chart }) => chart);
  const charts = [...new Set([...fields, ...robots, ...rates])].slice(0, MAX_CHARTS);
  return all.filter(({ chart }) => charts.includes(chart)).map(({ name }) => name);
}

/** The chosen ones by the charts that they share, in the order of their first. @param {Series[]} chosen */
export function chartsOf(chosen) {
  const charts = new Map();
  for (const series of chosen) {
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
