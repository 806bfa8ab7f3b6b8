/**
 * Keyboard focus that survives changes of the page. The focused element may be removed or disabled, by the key press or
 * by what the robot does. Then the focus rests on an element around it, and returns if the element does. It never moves
 * on to another control, where a second press of Enter would act, too.
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
  /** The element with the focus. @type {HTMLElement|null} */
  #at = null;
  /** Its ancestors, nearest first; they are kept because an element that was removed has none. */
  #around = [];
  /** The element that had the focus before it came to rest at `#at`; null if it does not. @type {HTMLElement|null} */
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

  /** Forget the element if the user has left it, but not if it was removed or disabled. */
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
