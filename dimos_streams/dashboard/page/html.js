/**
 * Templates as views. Static parts are made anew at each use, too: htm would cache them for good, with Preact's
 * reference to the tree in which they were first shown, and so keep in memory all that the page has ever shown.
 */

import { h } from "preact";
import htm from "htm";

const KEEP_NOTHING = 3;

export const html = htm.bind(function (...given) {
  this[0] = KEEP_NOTHING;
  return h(...given);
});
