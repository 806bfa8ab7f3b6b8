/** The one place that all texts of views pass on their way to the page: there, unsafe characters are written out. */

import { options } from "preact";
import { shown } from "./texts.js";

const ATTRIBUTES = ["title", "aria-label", "aria-valuetext", "alt"];

/** Pass the texts and labels of all views through `shown`. Call it once, before anything is rendered. */
export function showTexts() {
  const before = options.vnode;
  options.vnode = (vnode) => {
    if (vnode.type === null && typeof vnode.props === "string") vnode.props = shown(vnode.props);
    else if (typeof vnode.type === "string") showAttributes(vnode.props);
    before?.(vnode);
  };
}

function showAttributes(props) {
  for (const name of ATTRIBUTES) if (typeof props[name] === "string") props[name] = shown(props[name]);
}
