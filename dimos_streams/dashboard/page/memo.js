/** Views that are rendered again only when they would look different. */

import { h } from "preact";

/** Return a view that is rendered again only when its properties change. */
export function memo(view, isSame = hasSame) {
  function differs(next) {
    return !isSame(this.props, next);
  }
  return function Memo(props) {
    this.shouldComponentUpdate = differs;
    return h(view, props);
  };
}

function hasSame(before, next) {
  const names = Object.keys(next);
  return names.length === Object.keys(before).length && names.every((name) => next[name] === before[name]);
}
