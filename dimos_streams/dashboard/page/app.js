/** The page as a whole. */

import { useEffect, useState } from "preact/hooks";
import { html } from "./html.js";
import { CameraPanel } from "./camera/camera.js";
import { ConversationPanel } from "./conversation/conversation.js";
import { useKeptFocus } from "./focus.js";
import { Header } from "./header.js";
import { Help } from "./help.js";
import { useKeys } from "./keys.js";
import { MapPanel } from "./map/map.js";
import { Notices } from "./notices.js";
import { ErrorBoundary } from "./error_boundary.js";
import { Empty } from "./parts.js";
import { PlotsPanel } from "./plots/plots.js";
import { CallsPanel } from "./run/calls.js";
import { EventsPanel } from "./run/events.js";
import { ModulesPanel } from "./run/modules.js";
import { SkillsPanel } from "./run/skills.js";
import { TokenForm } from "./run/token.js";
import { TimelinePanel } from "./timeline/timeline.js";

export function App({ session }) {
  const [, show] = useState(0);
  useEffect(() => session.listen(() => show((count) => count + 1)), [session]);
  useKeys(session);
  useKeptFocus();
  const asked = Object.values(session.state?.agents ?? {}).flatMap((agent) => agent.approvals).length;
  const title = `${asked ? `(${asked}) ` : ""}dimos-streams`;
  useEffect(() => {
    document.title = title;
  }, [title]);
  const isStale = session.monitor.status !== "live";
  return html`
    <${Header} session=${session} />
    <main class=${isStale ? "stale" : ""}><${Main} key=${session.era} session=${session} /></main>
    <${Notices} session=${session} notices=${session.notices} />
    ${session.helps && html`<${Help} session=${session} />`}`;
}

function Main({ session }) {
  if (session.monitor.status === "token") return html`<${TokenForm} session=${session} />`;
  if (!session.state) return html`<${Empty}>Nothing is known of the run yet.<//>`;
  const panel = (name, area, view) => html`<${ErrorBoundary} view=${view} name=${name} area=${area} given=${{ session }} of=${session.state} />`;
  return html`
    <div class="cockpit">
      ${panel("Camera", "camera", CameraPanel)}
      ${panel("Map", "map", MapPanel)}
      ${panel("Conversation", "conversation", ConversationPanel)}
      ${panel("Timeline of calls", "timeline", TimelinePanel)}
    </div>
    <div class="below">
      ${panel("Plots", "plots", PlotsPanel)}
      ${panel("Calls", "calls", CallsPanel)}
      ${panel("Skills", "skills", SkillsPanel)}
      ${panel("Modules", "modules", ModulesPanel)}
      ${panel("Events", "events", EventsPanel)}
    </div>`;
}
