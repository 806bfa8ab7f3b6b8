/**
 * The focus of whoever uses keys: what has it may go, or may not be pressed any more, because of the press or because of what
 * the robot does. It rests on what stood around that, and comes back if that does. It does not go on to another control: who
 * presses Enter twice would act twice.
 */

import { useEffect } from "preact/hooks";

const RESTS = "[tabindex], [role=group], [role=region], article, section, header, main";
const FIELDS = "input, textarea, select";

export function useKeptFocus() {
  useEffect(() => {
    const kept = new KeptFocus();
    return () => kept.stop();
  }, []);
}

class KeptFocus {
  /** What has the focus. @type {HTMLElement|null} */
  #at = null;
  /** What is around it, the nearest first: of what has gone nobody can tell any more. */
  #around = [];
  /** What had the focus that rests at `#at` now. @type {HTMLElement|null} */
  #lost = null;
  #came = ({ target }) => this.#become(target);
  #went = () => queueMicrotask(() => this.#left());
  #changed = new MutationObserver(() => this.#look());

  constructor() {
    document.addEventListener("focusin", this.#came);
    document.addEventListener("focusout", this.#went);
    this.#changed.observe(document.body, { subtree: true, childList: true, attributeFilter: ["disabled"] });
  }

  stop() {
    document.removeEventListener("focusin", this.#came);
    document.removeEventListener("focusout", this.#went);
    this.#changed.disconnect();
  }

  #become(element) {
    [this.#at, this.#around, this.#lost] = [element, ancestorsOf(element), null];
  }

  /** Somebody lets go of what is still there; what has gone did not. */
  #left() {
    if (document.activeElement === document.body && canHave(this.#at)) this.#become(null);
  }

  #look() {
    if (this.#lost && canHave(this.#lost)) this.#lost.focus({ preventScroll: true });
    else if (this.#at && !canHave(this.#at)) this.#rest(this.#at);
  }

  #rest(lost) {
    const place = this.#around.find((each) => each.matches(RESTS) && each.checkVisibility());
    if (!place) return;
    rest(place, lost.matches(FIELDS));
    this.#lost = lost;
  }
}

/** @param {boolean} typed whether something was being typed, the rest of which is no order: `keys.js` asks */
function rest(place, typed) {
  const isAlways = place.hasAttribute("tabindex");
  if (!isAlways) place.tabIndex = -1;
  place.toggleAttribute("data-typed", typed);
  place.focus({ preventScroll: true });
  const left = () => {
    if (!isAlways) place.removeAttribute("tabindex");
    place.removeAttribute("data-typed");
  };
  place.addEventListener("blur", left, { once: true });
}

function canHave(element) {
  return !element || (element.isConnected && !element.matches(":disabled"));
}

function ancestorsOf(element) {
  const found = [];
  for (let at = element?.parentElement; at; at = at.parentElement) found.push(at);
  return found;
}
