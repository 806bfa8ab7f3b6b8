/** Plots over time: fields of open calls, speed and battery of robots, numbers and rates of topics. */

import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { useTick, useTopics, useVisible } from "../canvas/hooks.js";
import { valueText } from "../format.js";
import { useFolding } from "../menu.js";
import { Empty, Panel } from "../parts.js";
import { useSecond } from "../times.js";
import { Chart } from "./chart.js";
import { Samples } from "./samples.js";
import { chartsOf, defaults, valuesNow } from "./series.js";

const TICK_MS = 250;
const LONGEST_S = 600;
const SPANS = [[60, "1 min"], [LONGEST_S, "10 min"]];
const NUMBERS_HZ = 5;
const STALE_US = 2e6;

export function PlotsPanel({ session }) {
  const { live, robot } = session;
  const kept = useRef(null);
  kept.current ??= { samples: new Samples((LONGEST_S * 1000) / TICK_MS), known: new Map(), numbers: new Map(), ticker: ticking() };
  const [seconds, span] = useState(SPANS[0][0]);
  const [isPaused, pause] = useState(false);
  const [chosen, choose] = useState(null);
  const [names, know] = useState("");
  const [place, isVisible] = useVisible();
  const topics = useTopics(live).filter(({ kind, robot: whose }) =>
    (kind === "odometry" || kind === "number") && (robot === "" || whose === robot));
  const { samples, known, numbers, ticker } = kept.current;

  useEffect(() => {
    if (!isVisible) return undefined;
    const ends = topics.map(({ topic }) => live.watch(topic, (header) => numbers.set(topic, numberIn(header)), { maxHz: NUMBERS_HZ }));
    return () => ends.forEach((end) => end());
  }, [live, topics.map(({ topic }) => topic).join(" "), isVisible]);
  useTick(TICK_MS, () => {
    const time = session.now();
    const fresh = new Map([...numbers].filter(([, { utime }]) => time - utime < STALE_US));
    const values = valuesNow(session.state, live.rates, fresh, robot, live.topics);
    samples.add(time / 1e6, values.map(({ series, value }) => [series.name, value]));
    for (const { series } of values) known.set(series.name, series);
    for (const name of known.keys()) if (!samples.names.includes(name)) known.delete(name);
    know([...known.keys()].join("\n"));
    if (!isPaused && isVisible && !document.hidden) ticker.draw();
  });

  const all = [...known.values()];
  const shown = chosen === null ? defaults(all.filter(({ name }) => samples.silence(name) < SPANS[0][0])) : chosen;
  const charts = chartsOf(all, shown);
  const toggle = (name) => choose(shown.includes(name) ? shown.filter((each) => each !== name) : [...shown, name]);
  const tools = html`
    <${Picker} series=${all} shown=${shown} isAutomatic=${chosen === null} toggle=${toggle} automatic=${() => choose(null)} />
    ${SPANS.map(([length, text]) => html`<button key=${text} type="button" aria-pressed=${seconds === length} onClick=${() => span(length)}>${text}</button>`)}
    <button type="button" aria-pressed=${isPaused} onClick=${() => pause(!isPaused)}>Hold</button>`;
  return html`<${Panel} title="Plots" area="plots" tools=${tools} scrolls>
    <div class="charts" ref=${place} data-names=${names.length}>
      ${charts.map((series) => html`<${Chart} key=${series[0].chart} series=${series} samples=${samples} seconds=${seconds} ticker=${ticker} />`)}
      ${charts.length === 0 && html`<${Empty}>No number comes yet: open calls that report some, robots and topics have them.<//>`}
    </div>
    <${ValuesInWords} series=${charts.flat()} samples=${samples} />
  <//>`;
}

function numberIn({ kind, robot, message, utime }) {
  if (kind === "number") return { kind, robot, utime, value: Number(message.data) };
  const { x, y } = message.twist?.twist.linear ?? {};
  return { kind, robot, utime, value: Math.hypot(x, y) };
}

/** Return a set of functions that `draw` calls together. */
function ticking() {
  const all = new Set();
  return { add: (tick) => all.add(tick), delete: (tick) => all.delete(tick), draw: () => all.forEach((tick) => tick()) };
}

function Picker({ series, shown, isAutomatic, toggle, automatic }) {
  const groups = Map.groupBy(series, ({ group }) => group);
  const picker = useFolding();
  return html`<details class="picker" ref=${picker}>
    <summary>${isAutomatic ? "Series: automatic" : `Series: ${shown.length} chosen`}</summary>
    <div class="choices">
      <button type="button" aria-pressed=${isAutomatic} onClick=${automatic}>Automatic</button>
      ${[...groups].map(([group, members]) => html`<fieldset key=${group}><legend>${group}</legend>
        ${members.map(({ name, label }) => html`<label key=${name}><input type="checkbox" checked=${shown.includes(name)}
          onChange=${() => toggle(name)} />${label}</label>`)}</fieldset>`)}
    </div>
  </details>`;
}

/** The newest values as a table, for screen readers. */
function ValuesInWords({ series, samples }) {
  useSecond();
  return html`<table class="hidden"><caption>Newest values</caption><tbody>${series.map((each) => html`
    <tr key=${each.name}><th scope="row">${each.label}</th><td>${valueText(samples.newest(each.name), each)}</td></tr>`)}</tbody></table>`;
}
