/** The timeline of calls: what was asked for, what was done about it, how that went on and how it ended. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { html } from "../html.js";
import { counted } from "../format.js";
import { Empty, Panel } from "../parts.js";
import { useSecond } from "../times.js";
import { Board } from "./board.js";
import { TimelineCanvas } from "./canvas.js";
import { Details, State, Table } from "./details.js";
import { neighbour } from "./layout.js";
import { inWords } from "./words.js";

const OPTIONS_MS = 1000;
const MAX_OPTIONS = 60;
const ZOOM = 1.6;
const WAYS = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };
const SHOWN_STATES = ["open", "completed", "failed", "cancelled", "timed_out", "lost", "rejected"];

export function TimelinePanel({ session }) {
  const { selected } = session;
  const board = useMemo(() => new Board(session), [session]);
  const [, show] = useState(0);
  const [asTable, becomeTable] = useState(false);
  useEffect(() => board.start(), [board]);
  useEffect(() => board.listen(() => show((count) => count + 1)), [board]);
  board.hears(session.monitor.status);
  useLayoutEffect(() => {
    if (selected === null) return;
    board.cursor = selected;
    board.reveal(selected);
  }, [board, selected]);
  const { layout } = board;
  const call = layout.byId.get(selected)?.call;
  const tools = html`<${Tools} board=${board} asTable=${asTable} becomeTable=${becomeTable} />`;
  return html`<${Panel} title="Timeline of calls" area="timeline" tools=${tools} note=${html`<${Legend} />`}>
    <div class=${`board ${call ? "with-details" : ""}`}>
      ${asTable ? html`<${Table} bars=${seen(board)} session=${session} />` : html`<${Bars} board=${board} session=${session} />`}
      ${call && html`<${Details} key=${call.id} call=${call} layout=${layout} session=${session} />`}
    </div>
  <//>`;
}

function Legend() {
  return html`<span class="legend" aria-hidden="true">${SHOWN_STATES.map((state) => html`<${State} key=${state} state=${state} />`)}</span>`;
}

function Tools({ board, asTable, becomeTable }) {
  return html`
    <button type="button" title="Earlier" aria-label="Earlier" onClick=${() => board.pan(-0.7)}>←</button>
    <button type="button" title="Later" aria-label="Later" disabled=${board.follows} onClick=${() => board.pan(0.7)}>→</button>
    <button type="button" title="More time" aria-label="Show more time" onClick=${() => board.zoom(ZOOM)}>−</button>
    <button type="button" title="Less time" aria-label="Show less time" onClick=${() => board.zoom(1 / ZOOM)}>+</button>
    <button type="button" aria-pressed=${String(board.follows)} onClick=${() => board.follow(!board.follows)}>Follow now</button>
    <button type="button" aria-pressed=${String(asTable)} onClick=${() => becomeTable(!asTable)}>Table</button>`;
}

/** Return the bars in view. */
function seen(board) {
  const { view, now } = board;
  return board.layout.bars.filter(({ call }) => call.begin <= view.to && (call.end ?? now) >= view.from);
}

/** The canvas, and over it a list box of the same calls for screen readers. */
function Bars({ board, session }) {
  const { selected, now } = session;
  const [surface, canvas, tip, timeline] = [useRef(null), useRef(null), useRef(null), useRef(null)];
  useLayoutEffect(() => {
    timeline.current = new TimelineCanvas(board, session, surface.current, canvas.current, tip.current);
    return () => timeline.current.stop();
  }, [board, session]);
  useLayoutEffect(() => timeline.current.changed(), [selected, session.robot, board.cursor]);
  const options = useOptions(board, now);
  const isEmpty = board.log.calls.size === 0;
  return html`<div class="stage-box">
    <canvas ref=${canvas} role="img" aria-label=${`Timeline, ${counted(options.count, "call")} in view`}></canvas>
    <div ref=${surface} class="stage" tabindex="0" role=${options.shown.length > 0 ? "listbox" : "group"} aria-label="Calls; arrow keys go through them, Enter shows one"
      aria-activedescendant=${options.shown.some(({ id }) => id === board.cursor) ? `call-${board.cursor}` : undefined}
      onKeyDown=${(event) => pressed(event, board, session)}>
      ${options.shown.map(({ id, text }) => html`<div key=${id} id=${`call-${id}`} class="hidden" role="option" aria-selected=${String(id === selected)}>${text}</div>`)}
    </div>
    <div ref=${tip} class="tip" hidden></div>
    ${isEmpty && html`<div class="over"><${Empty}>No call yet: what an agent is asked, and what it does then, appears here.<//></div>`}
  </div>`;
}

/** Return the calls in view, in words. They are made again when the cursor moves, and once a second as long as there is
 * something new. */
function useOptions(board, now) {
  const kept = useRef({ at: -Infinity, of: "", cursor: null, count: 0, shown: [] });
  const seenNow = () => `${board.log.version} ${board.follows || board.view.from}`;
  if (performance.now() - kept.current.at > OPTIONS_MS || board.cursor !== kept.current.cursor) {
    const bars = seen(board);
    const at = bars.findIndex(({ call }) => call.id === board.cursor);
    const from = Math.max(0, Math.min(bars.length - MAX_OPTIONS, at - MAX_OPTIONS / 2));
    const shown = bars.slice(from, from + MAX_OPTIONS).map(({ call }) => ({ id: call.id, text: inWords(call, now()) }));
    kept.current = { at: performance.now(), of: seenNow(), cursor: board.cursor, count: bars.length, shown };
  }
  useSecond(() => (kept.current.of === seenNow() ? "" : performance.now())); // for what came too soon after the last
  return kept.current;
}

function pressed(event, board, session) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const acts = {
    Enter: () => board.cursor !== null && session.toggle(board.cursor),
    Home: () => board.show(board.bounds.first, board.bounds.last),
    End: () => board.follow(true),
    PageUp: () => board.pan(-0.9),
    PageDown: () => board.pan(0.9),
    "+": () => board.zoom(1 / ZOOM),
    "-": () => board.zoom(ZOOM),
  };
  const way = WAYS[event.key];
  if (way) {
    const next = neighbour(board.layout, board.cursor, way);
    if (next) board.moveCursor(next.call.id);
  } else if (acts[event.key]) acts[event.key]();
  else return;
  event.preventDefault();
}
