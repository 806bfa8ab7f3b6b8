/** Moments of a recording, as people read and write them. */

/** Return a moment as text: `1:02:03.4`, `0:12.3`. @param {number} us from the beginning, µs */
export function momentText(us) {
  const tenths = Math.max(0, Math.round(us / 1e5));
  const seconds = Math.floor(tenths / 10);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const shown = parts[0] > 0 ? parts : parts.slice(1);
  return `${shown.map((part, place) => (place ? String(part).padStart(2, "0") : part)).join(":")}.${tenths % 10}`;
}

/** Return the moment that a text means, also one with fewer parts (`75`, `1:15`).
 * @returns {number|null} µs from the beginning; null for anything else */
export function momentOf(text) {
  const parts = text.trim().split(":");
  if (parts.length > 3 || !parts.every((part) => /^\d+(\.\d+)?$/.test(part))) return null;
  return Math.round(parts.reduce((sum, part) => sum * 60 + Number(part), 0) * 1e6);
}
