/** JSON with integers beyond 2^53 as they are written. JavaScript would round them: another one would be approved. */

/** Return what a text says, with such integers as values that `JSON.stringify` writes as they stood. */
export function parseExactly(text) {
  if (!JSON.rawJSON) return JSON.parse(text); // browsers from before 2025
  return JSON.parse(text, (_, value, { source }) => (isRounded(value, source) ? JSON.rawJSON(source) : value));
}

/** Return a message of the monitor, with the arguments of calls that wait for an operator as `parseExactly` has them:
 * nothing calculates with those. */
export function parseMessage(text) {
  const message = JSON.parse(text);
  const waiting = waitingIn(message);
  const exact = waiting.length > 0 ? waitingIn(parseExactly(text)) : [];
  exact.forEach((call, index) => (waiting[index].arguments = call.arguments));
  return message;
}

/** Return what waits for approval or for a step. */
function waitingIn(message) {
  const agents = (message.snapshot ?? message.change)?.agents ?? {};
  return Object.values(agents).flatMap((agent) => [...(agent?.approvals ?? []), ...(agent?.waiting_calls ?? [])]);
}

function isRounded(value, source) {
  return typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER && /^-?\d+$/.test(source);
}
