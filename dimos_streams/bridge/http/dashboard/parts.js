/** Small parts of views, and how values read. */

import { h } from "./tree.js";

const CLOCK = new Intl.DateTimeFormat([], { timeStyle: "medium", hourCycle: "h23" });

/** @param {Date} date */
export function clockText(date) {
  return CLOCK.format(date);
}

/** @param {number} utime µs since the Unix epoch, of the robot's clock */
export function time(utime) {
  const date = new Date(utime / 1000);
  return h("time", { datetime: date.toISOString() }, clockText(date));
}

export function clipped(text, length = 300) {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

/** Arguments on a line: `distance_m=0.5, label="a"`. */
export function listed(values = {}) {
  return Object.entries(values).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
}

/** A call as a program would write it. */
export function written({ skill, arguments: values }, length = 300) {
  return h("code", {}, `${skill}(${clipped(listed(values), length)})`);
}

export function counted(number, noun) {
  return `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
}

/** @param {string} module `robot1/agent` */
export function namespaceOf(module) {
  return module.slice(0, Math.max(0, module.lastIndexOf("/")));
}

export function button(label, action, attributes = {}) {
  return h("button", { type: "button", "data-do": action, ...attributes }, label);
}

export function panel(title, ...children) {
  return h("section", { class: "panel" }, h("h2", {}, title), ...children);
}

export function empty(text) {
  return h("p", { class: "quiet" }, text);
}
