/** Icons, drawn as lines in the colour of the text around them. They say nothing that words don't say as well. */

import { html } from "./html.js";

const PATHS = {
  system: "M8 1.8a6.2 6.2 0 1 0 0 12.4zM8 1.8a6.2 6.2 0 0 1 0 12.4",
  light: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8 13 13M13 3l-1.2 1.2M4.2 11.8 3 13",
  dark: "M13.4 9.6A5.8 5.8 0 0 1 6.4 2.6a5.8 5.8 0 1 0 7 7z",
  help: "M5.9 5.9a2.2 2.2 0 1 1 3.2 2c-.8.4-1.1.8-1.1 1.6M8 12v.1M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8",
  stop: "M5.4 1.8h5.2l3.6 3.6v5.2l-3.6 3.6H5.4l-3.6-3.6V5.4zM5.6 8h4.8",
  robot: "M3 6.5h10v6.2H3zM8 6.5V3.6M8 3.4v-.2M5.9 9.2v.4M10.1 9.2v.4M1.2 8.6v2M14.8 8.6v2",
};

export function Icon({ name, size = 16 }) {
  return html`<svg class="icon" width=${size} height=${size} viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d=${PATHS[name]} /></svg>`;
}
