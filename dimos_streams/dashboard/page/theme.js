/** Light or dark: the system's choice, unless somebody has chosen here; and the page's colours for canvases. */

const KEY = "theme";
const NEXT = { system: "light", light: "dark", dark: "system" };
const listeners = new Set();
const known = new Map();

/** @returns {"system" | "light" | "dark"} */
export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

/** Takes the choice of an earlier visit. */
export function rememberedTheme() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  become(localStorage.getItem(KEY));
}

/** The next of the three. */
export function switchTheme() {
  const next = NEXT[theme()];
  localStorage.setItem(KEY, next);
  become(next);
}

/** A colour of `base.css` as canvases want it: `colour("accent")` is an `rgb(…)`. */
export function colour(name) {
  if (!known.has(name)) {
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    known.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return known.get(name);
}

/** Call `listener` when colours are others. @returns {() => void} ends that */
export function onTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function become(choice) {
  if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
  changed();
}

function changed() {
  known.clear();
  for (const listener of [...listeners]) listener();
}
