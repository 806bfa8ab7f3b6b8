/** HTML and SVG elements, and how a page takes the form of a new tree. Nothing here makes HTML of text. */

/** @typedef {Node | string | number | false | null | undefined} Child */

/** @param {Element} node @param {Record<string, unknown>} attributes @param {(Child | Child[])[]} children */
export function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  const shown = children.flat().filter((child) => child !== false && child !== null && child !== undefined);
  node.append(...shown.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

/** An HTML element. @param {string} tag */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Give `old` the form of `fresh`, which is used up. What a user has opened, written or selected stays. */
function patch(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  patchChildren(old, fresh);
}

/** Children with a `data-key` are moved with their key, the others matched by place and tag. */
function patchChildren(old, fresh) {
  const wanted = new Set([...fresh.children].map((child) => child.dataset.key));
  const keyed = new Map();
  for (const child of [...old.children]) {
    if (child.dataset.key === undefined) continue;
    if (wanted.has(child.dataset.key)) keyed.set(child.dataset.key, child);
    else child.remove();
  }
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const key = next.dataset?.key;
    const sameForm = at && at.dataset?.key === undefined && at.nodeName === next.nodeName;
    const match = key === undefined ? sameForm && at : keyed.get(key);
    if (!match) {
      old.insertBefore(next, at);
      continue;
    }
    if (match === at) at = at.nextSibling;
    else old.insertBefore(match, at);
    patch(match, next);
  }
  while (at) {
    const left = at;
    at = at.nextSibling;
    left.remove();
  }
}

/** Patch a target's children. Logs stay at their end, but where somebody has scrolled back in them. */
export function show(target, ...children) {
  const isBack = (log) => log.scrollHeight - log.scrollTop - log.clientHeight > 8;
  const back = new Set([...target.querySelectorAll(".log")].filter(isBack));
  patchChildren(target, h("div", {}, ...children));
  for (const log of target.querySelectorAll(".log")) {
    if (!back.has(log)) log.scrollTop = log.scrollHeight;
  }
}
