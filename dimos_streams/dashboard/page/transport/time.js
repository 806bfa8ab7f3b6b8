/** Moments of a recording, as people read and write them. */

/** Return a moment as text: `1:02:03.4`, `0:12.3`. @param {number} us from the beginning, µs */
export function momentText(us) {
  const tenths = Math.max(0, Math.round(us / 1e5));
  const seconds = Math.floor(tenths / 10);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const shown = parts[0] > 0 ? parts : parts.slice(1);
  return `${shown.map((part, place) => (place ? String(part).padStart(2, "0") : part)).join(":")}.${tenths % 10}`;
}

/** The form of a moment as people write it, also with fewer parts (`75`, `1:15`) and with their own decimal sign. */
export const MOMENT = String.raw`\s*\d+([.,]\d+)?(:\d+([.,]\d+)?){0,2}\s*`;

/** Return the moment that a text means. @returns {number|null} µs from the beginning; null for anything but a moment */
export function momentOf(text) {
  if (!new RegExp(`^${MOMENT}$`).test(text)) return null;
  return Math.round(text.replaceAll(",", ".").split(":").reduce((sum, part) => sum * 60 + Number(part), 0) * 1e6);
}
