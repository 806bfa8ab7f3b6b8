/** Values as texts. */

const CLOCK = new Intl.DateTimeFormat([], { timeStyle: "medium", hourCycle: "h23" });
const DAY_CLOCK = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

/** Maximum distance of a `Date` from the Unix epoch, in ms. */
const FARTHEST_MS = 8.64e15;

/** Return a time as a `Date`, clamped to the range of dates. @param {number} utime µs since the Unix epoch */
export function dateOf(utime) {
  return new Date(Math.max(-FARTHEST_MS, Math.min(FARTHEST_MS, utime / 1000)) || 0);
}

/** @param {Date} date */
export function clockText(date) {
  return CLOCK.format(date);
}

/** @param {Date} date */
export function dayText(date) {
  return DAY_CLOCK.format(date);
}

/** Return arguments as one line: `distance_m=0.5, label="a"`. */
export function listed(values = {}) {
  return Object.entries(values).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
}

export function counted(number, noun) {
  return `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
}

/** @param {string} module `robot1/agent` */
export function namespaceOf(module) {
  return module.slice(0, Math.max(0, module.lastIndexOf("/")));
}

/** Whether a namespace is a robot's, or nested in it; all of them are in the robot `""`. */
export function isIn(namespace, robot) {
  return robot === "" || namespace === robot || namespace.startsWith(`${robot}/`);
}

/** @param {number} seconds a length of time, or an age */
export function spanText(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min${whole < 600 && whole % 60 ? ` ${whole % 60} s` : ""}`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h${whole % 3600 >= 60 ? ` ${Math.floor((whole % 3600) / 60)} min` : ""}`;
  return `${Math.floor(whole / 86400)} d`;
}

/** Return an age in words: `5 min ago`. @param {number} seconds its age */
export function agoText(seconds) {
  if (seconds < 3) return "now";
  if (seconds < 59.5) return `${Math.round(seconds)} s ago`;
  if (seconds < 59.5 * 60) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 23.5 * 3600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} d ago`;
}

/** Return the name of a skill without the prefix of its robot: `robot1_turn` → `turn`. @param {string} namespace */
export function bareSkill(skill, namespace) {
  const before = `${namespace.replaceAll("/", "_")}_`;
  return namespace && skill.startsWith(before) ? skill.slice(before.length) : skill;
}

/** Return a name as a title: `follow_person` → `Follow person`. */
export function titled(name) {
  const words = name.replaceAll("_", " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Return the title of a robot's skill: `robot1_go_to` of `robot1` is “Go to”. */
export function skillTitle(skill, namespace) {
  return titled(bareSkill(skill, namespace));
}

/** Endings of names with their units and numbers of decimals, null if these depend on the value. Longer ones first. */
const UNITS = [
  ["m_s", "m/s", 2], ["mps", "m/s", 2], ["deg_s", "°/s", 0], ["rad_s", "rad/s", 2], ["radps", "rad/s", 2], ["percent", "%", 0], ["pct", "%", 0],
  ["deg", "°", 0], ["rad", "rad", 2], ["ms", "ms", 0], ["m", "m", 2], ["s", "s", null], ["hz", "Hz", 1], ["kg", "kg", 2], ["v", "V", 1], ["a", "A", 1], ["c", "°C", 1],
];
// It has no prototype: names come from outside, and `constructor` must not be found.
const NAMED = { __proto__: null, speed: ["m/s", 2], velocity: ["m/s", 2], confidence: ["", 2] };

/**
 * Return what a number measures, by its name: `distance_m` is a distance in m.
 * @typedef {{title: string, unit: string, decimals: number|null}} Measure
 * @returns {Measure}
 */
export function measureOf(name) {
  const found = UNITS.find(([ending]) => name.endsWith(`_${ending}`));
  const [unit, decimals] = found?.slice(1) ?? NAMED[name] ?? ["", null];
  return { title: (found ? name.slice(0, -found[0].length - 1) : name).replaceAll("_", " "), unit, decimals };
}

/** Return a number as text, without its unit: `1.83`, `−3`. @param {number} value @param {Measure} measure */
export function numberText(value, { decimals }) {
  const size = Math.abs(value);
  const usual = Number.isInteger(value) || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toFixed(decimals ?? usual).replace(/^-(?=0(\.0+)?$)/, "").replace("-", "−");
}

/** Return a unit, with a space before it if one belongs between it and its number. @param {Measure} measure */
export function unitText({ unit }) {
  return unit && !/^°(\/|$)/.test(unit) ? ` ${unit}` : unit;
}

/** Return a number with its unit: `1.83 m`, `−3°`. @param {number|null} value @param {Measure} measure */
export function valueText(value, measure) {
  return value === null ? "–" : numberText(value, measure) + unitText(measure);
}

/** Return arguments in words: `person in red · distance 1.5 m`. Those that were not given are left out. */
export function givenText(values = {}) {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== "");
  return given.map(([name, value]) => {
    const measure = measureOf(name);
    if (typeof value === "string") return value;
    return typeof value === "number" ? `${measure.title} ${value}${unitText(measure)}` : `${measure.title} ${JSON.stringify(value)}`;
  }).join(" · ");
}
