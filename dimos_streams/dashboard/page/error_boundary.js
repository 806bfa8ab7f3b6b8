/** The boundary of a panel, which its errors do not pass. */

import { Component, h } from "preact";
import { html } from "./html.js";

/** A view whose errors leave the rest of the page alone: whatever comes from outside, Stop stays within reach.
 * After an error the view is tried again once `of` is something else. */
export class ErrorBoundary extends Component {
  componentDidCatch(error) {
    reportError(error);
    this.setState({ failed: error, of: this.props.of });
  }

  render({ view, name, area = "", of, given }, { failed, of: failedOf }) {
    if (!failed || failedOf !== of) return h(view, given);
    return html`<section class=${`panel ${area}`} aria-label=${name} role="alert"><p class="bad">${name} can't be shown: ${String(failed)}</p></section>`;
  }
}
