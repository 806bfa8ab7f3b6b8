/**
 * Templates as views. What is the same at each use is made anew each time, too: htm would keep it for good, with Preact's
 * reference to the tree that it was first seen in, and by that all that the page has ever shown.
 */

import { h } from "preact";
import htm from "htm";

const KEEP_NOTHING = 3;

export const html = htm.bind(function (...given) {
  this[0] = KEEP_NOTHING;
  return h(...given);
});
