/** One chart of series that share an axis. */

import uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";
import { html } from "../html.js";
import { write } from "../canvas/hooks.js";
import { clockText, valueText } from "../format.js";
import { colour, onTheme } from "../theme.js";

const COLOURS = 6;
const FONT = "11px system-ui, sans-serif";
const SYNC = "plots";
/** Half the width of a time label, in pixels: the room for one below the right end. */
const HALF_TIME_PX = 28;

/** @param {{series: import("./series.js").Series[], samples: import("./samples.js").Samples, seconds: number,
 *   ticker: {add: (tick: () => void) => void, delete: (tick: () => void) => void}}} given */
export function Chart({ series, samples, seconds, ticker }) {
  const place = useRef(null);
  const values = useRef(null);
  const span = useRef(seconds);
  span.current = seconds;
  const names = series.map(({ name }) => name);
  useEffect(() => {
    let plot = null;
    const [element, said] = [place.current, values.current];
    const size = () => ({ width: Math.max(50, element.clientWidth), height: Math.max(40, element.clientHeight) });
    const draw = () => {
      const data = samples.window(names, span.current);
      const end = data[0].at(-1) ?? Date.now() / 1000;
      plot.setData(data, false);
      plot.setScale("x", { min: end - span.current, max: end });
      for (const [index, each] of series.entries()) write(said.children[index]?.lastElementChild, valueText(samples.newest(each.name), each));
    };
    const make = () => {
      plot?.destroy();
      plot = new uPlot({ ...optionsOf(series), ...size() }, samples.window(names, span.current), element);
      draw();
    };
    make();
    const watch = new ResizeObserver(() => plot.setSize(size()));
    watch.observe(element);
    const endTheme = onTheme(make);
    ticker.add(draw);
    return () => {
      ticker.delete(draw);
      endTheme();
      watch.disconnect();
      plot.destroy();
    };
  }, [names.join("\n"), samples]);
  useEffect(() => ticker.draw(), [seconds]);
  const [{ title, unit }] = series;
  return html`<figure class="chart" aria-label=${`${title}${unit && ` in ${unit}`} over time`}>
    <figcaption><b>${title}</b>${unit && html` <span class="quiet">${unit}</span>`}
      <span class="values" ref=${values}>${series.map(({ name, label }, index) => html`<span key=${name}
        style=${{ "--mark": `var(--plot-${index % COLOURS})` }}>${series.length > 1 && html`<i>${label}</i>`}<b>–</b></span>`)}</span>
    </figcaption>
    <div class="plot" ref=${place} aria-hidden="true"></div>
  </figure>`;
}

function optionsOf(series) {
  const line = { stroke: colour("plot-grid"), width: 1 };
  const axis = { stroke: colour("quiet"), grid: line, ticks: { show: false }, font: FONT };
  return {
    cursor: { sync: { key: SYNC }, drag: { setScale: false }, y: false, points: { size: 7 } },
    legend: { show: false },
    padding: [6, HALF_TIME_PX, 0, 0],
    scales: { x: { time: true, auto: false }, y: { range: rangeOf } },
    axes: [
      { ...axis, size: 22, space: 80, values: (_, times) => times.map((time) => clockText(new Date(time * 1000))) },
      { ...axis, size: 46, space: 26 },
    ],
    series: [{}, ...series.map((each, index) => ({
      label: each.label, stroke: colour(`plot-${index % COLOURS}`), width: 2, points: { show: false }, spanGaps: false,
      value: (_, value) => valueText(value, each),
    }))],
  };
}

/** Return the range of the y axis: with some room, and wide enough that noise stays small. */
function rangeOf(_, low, high) {
  if (low === null || high === null) return [0, 1];
  const least = Math.max(0.2, Math.abs(high) * 0.1);
  const room = Math.max((high - low) * 0.12, (least - (high - low)) / 2, 0);
  const bottom = low - room;
  return [low >= 0 && bottom < 0 ? 0 : bottom, high + room];
}
