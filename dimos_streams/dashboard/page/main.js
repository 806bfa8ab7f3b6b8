/**
 * The operators' page: shows what the bridge reports and gives it orders (docs/monitor.md, docs/dashboard.md).
 *
 * All that comes from outside becomes text nodes, attribute values and pixels, never HTML.
 */

import { h, options, render } from "preact";
import { App } from "./app.js";
import { showTexts } from "./every_text.js";
import { Session } from "./session.js";
import { rememberedTheme } from "./theme.js";

options.requestAnimationFrame = setTimeout; // effects need no frame
rememberedTheme();
showTexts();
const session = new Session({ readOnly: document.documentElement.dataset.mode === "recording" });
const place = document.getElementById("app");
place.replaceChildren();
render(h(App, { session }), place);
session.start();
