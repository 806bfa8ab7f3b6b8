/** How values read. */

const CLOCK = new Intl.DateTimeFormat([], { timeStyle: "medium", hourCycle: "h23" });
const DAY_CLOCK = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

/** @param {Date} date */
export function clockText(date) {
  return CLOCK.format(date);
}

/** @param {Date} date */
export function dayText(date) {
  return DAY_CLOCK.format(date);
}

export function clipped(text, length = 300) {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

/** Arguments on a line: `distance_m=0.5, label="a"`. */
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

/** @param {number} seconds a length of time, or an age */
export function spanText(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min${whole < 600 && whole % 60 ? ` ${whole % 60} s` : ""}`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h${whole % 3600 >= 60 ? ` ${Math.floor((whole % 3600) / 60)} min` : ""}`;
  return `${Math.floor(whole / 86400)} d`;
}

/** When something was, as people say it. @param {number} seconds its age */
export function agoText(seconds) {
  if (seconds < 3) return "now";
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} d ago`;
}

/** `follow_person` → `Follow person`. */
export function titled(name) {
  const words = name.replaceAll("_", " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Endings of names, with their units and how many decimals make sense. */
const UNITS = [
  [/_m_s$|_mps$/, " m/s", 2], [/_deg_s$/, "°/s", 0], [/_rad_s$/, " rad/s", 2], [/_deg$/, "°", 0], [/_rad$/, " rad", 2], [/_ms$/, " ms", 0],
  [/_m$/, " m", 2], [/_s$/, " s", 0], [/_hz$/, " Hz", 1], [/_v$/, " V", 1],
];
const FRACTIONS = new Set(["speed", "confidence"]);

/** A figure with its name's unit: `distance_m`, 1.834 → Distance, 1.83, m. */
export function figureText(name, value) {
  const [ending, unit, decimals] = UNITS.find(([ending]) => ending.test(name)) ?? [/$/, "", 2];
  const text = Number.isInteger(value) && !unit && !FRACTIONS.has(name) ? String(value) : value.toFixed(decimals).replace(/^-(?=0(\.0+)?$)/, "").replace("-", "−");
  return { label: titled(name.replace(ending, "")), text, unit };
}
