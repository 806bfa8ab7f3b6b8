/** Whatever a view shows passes here: the one place where texts from outside become what is seen. */

import { options } from "preact";
import { shown } from "./texts.js";

const ATTRIBUTES = ["title", "aria-label", "aria-valuetext", "alt"];

/** Have all that views show pass here; call it once, before anything is shown. */
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
