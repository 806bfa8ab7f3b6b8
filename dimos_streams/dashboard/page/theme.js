/** The light or dark theme: the system's, unless the user has chosen one; and the theme's colours for canvases. */

const KEY = "theme";
const NEXT = { system: "light", light: "dark", dark: "system" };
const listeners = new Set();
const known = new Map();

/** @returns {"system" | "light" | "dark"} */
export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

/** Restore the choice of an earlier visit, and follow changes of the system's theme. */
export function rememberedTheme() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  become(localStorage.getItem(KEY));
}

/** Switch to the next of the three: system, light, dark. */
export function switchTheme() {
  const next = NEXT[theme()];
  localStorage.setItem(KEY, next);
  become(next);
}

/** Return a colour of `base.css` in the form that canvases take: `colour("accent")` is an `rgb(…)`. */
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

/** Call `listener` when the colours change. @returns {() => void} ends that */
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
