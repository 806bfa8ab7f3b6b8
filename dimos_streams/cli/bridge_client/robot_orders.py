"""An operator's orders to the bridges of runs: robots stand still, or may move again; calls end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dimos_streams.cli.bridge_client.connection import (
    BridgeAddress,
    BridgeUnreachableError,
    bridge_of_run,
    find_bridge,
    living_runs,
    open_gateway,
)
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.terminal.named_runs import refuse_several
from dimos_streams.cli.terminal.output import note
from dimos_streams.client.asking_again import stop_until_answered
from dimos_streams.client.orders import ANSWER_S, ORDER_IN_DOUBT, Order, OrderReport
from dimos_streams.common.readable.plural import plural
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.errors import (
    BadRequestError,
    CallInDoubtError,
    DimosStreamsError,
    NoAnswerError,
    UnknownRobotError,
)

if TYPE_CHECKING:
    from dimos_streams.runtime.registry import RunRecord

_Refusal = UnknownRobotError | BadRequestError
"""What every bridge may answer alike, as the order is typed wrong."""
_SLOW_S = 3.0
"""The time, in seconds, after which a person hears that a bridge has not answered yet: a robot may be moving."""
_ASKED_AFTER_S = 1.0
"""The time, in seconds, after which the bridge is asked what an order waits for."""
_MEANWHILE: Mapping[Order, str] = {
    "/robots/stop": "; use the emergency stop",
    "/robots/release": "",
    "/calls/cancel": "; use the emergency stop if a robot must not move on",
}


@dataclass(frozen=True, slots=True)
class OrderTarget:
    """The target of an order: a run, or a bridge."""

    name: str
    """The run's id, or the bridge's URL."""
    address: BridgeAddress | None
    """The address of the bridge; None for a run without one, or of which nobody knows it."""
    why_unknown: str = ""
    """Why nobody knows it."""


@dataclass(frozen=True, slots=True)
class OrderResult:
    """The result of an order at one bridge."""

    target: str
    done: bool
    text: str
    report: Mapping[str, Any]

    @property
    def lines(self) -> list[str]:
        """The text in lines: that of a hub has one for each robot."""
        return self.text.split("\n") if "robots" in self.report else [self.text]

    def to_dict(self) -> dict[str, Any]:
        """Return the result for scripts."""
        return {"run": self.target, "done": self.done, "text": self.text, **self.report}


def order_targets(choice: BridgeChoice) -> list[OrderTarget]:
    """Return the bridge that a choice names, else those of all living runs, else the one at the usual port. The parts
    of one blueprint have one bridge, which is asked once.

    Raises ``UserError`` for a choice that contradicts itself, and for a name that no run has, or several with bridges
    of their own.
    """
    from dimos_streams.runtime.registry import runs
    from dimos_streams.runtime.unreadable_runs import unreadable_runs

    choice.check()
    # An order with an address needs no run of this machine, nor the right to look for any.
    if choice.run is not None:
        named = living_runs(choice.run)
        bridges = list(_by_bridges(named, choice.sent_token))
        if len(bridges) > 1:
            refuse_several(named, choice.run)
        return bridges
    living, unreadable = ([], []) if choice.has_address else (runs(), unreadable_runs())
    if not living and not unreadable:
        address = find_bridge(choice)
        return [OrderTarget(address.url, address)]
    return [
        *_by_bridges(living, choice.sent_token),
        *(OrderTarget(run.run_id, None, why_unknown=str(run)) for run in unreadable),
    ]


def _by_bridges(living: Iterable[RunRecord], token: str | None) -> Iterator[OrderTarget]:
    """Yield each bridge of living runs, once, and each run without one. A bridge is called by the run that has it."""
    asked: set[str] = set()
    for record in sorted(living, key=lambda record: record.port is None):
        address = bridge_of_run(record, token)
        if address is None or address.url not in asked:
            yield OrderTarget(record.run_id, address)
        if address is not None:
            asked.add(address.url)


async def give(
    order: Order,
    robot: str,
    reason: str,
    to: list[OrderTarget],
    heard: Callable[[OrderResult], None] = lambda result: None,
) -> list[OrderResult]:
    """Give an order to all at once, and call ``heard`` with each result when it comes. A target that can't be
    reached, or takes long, keeps neither the order from the others nor their results from who waits. Of each that
    takes long a person hears.

    Raises ``UnknownRobotError`` if no bridge has such a robot; it names those of all that were asked. Raises
    ``BadRequestError`` if none can read the order.
    """
    body = {"robot": robot, "reason": reason}

    async def ask(target: OrderTarget) -> OrderResult | _Refusal:
        slow = asyncio.ensure_future(_say_slow(order, target))
        try:
            result = await _give(order, body, target)
        finally:
            await end_tasks_silently(slow)
        if isinstance(result, OrderResult):
            heard(result)
        return result

    found = dict(zip(to, await asyncio.gather(*map(ask, to)), strict=True))
    unknown = {each.name: answer for each, answer in found.items() if isinstance(answer, UnknownRobotError)}
    # A run without a bridge knows of no robot; a bridge that can't be reached may have this one.
    if unknown and all((each.address is None and not each.why_unknown) or each.name in unknown for each in found):
        raise _joint(robot, unknown)
    unread = {each: answer for each, answer in found.items() if isinstance(answer, BadRequestError)}
    if unread and len(unread) == len(found):
        raise next(iter(unread.values()))
    for target, error in unread.items():
        found[target] = result = OrderResult(target.name, False, f"NOT done: {error}", {})
        heard(result)
    return [answer for answer in found.values() if isinstance(answer, OrderResult)]


async def _say_slow(order: Order, to: OrderTarget) -> None:
    """Say what an order waits for that takes long: for a bridge, or for what a bridge that answers waits for."""
    if to.address is None:
        return
    await asyncio.sleep(min(_ASKED_AFTER_S, _SLOW_S))
    rest_s = max(0.0, _SLOW_S - _ASKED_AFTER_S)
    try:
        left = await asyncio.wait_for(_open_calls(to.address), rest_s)
    except (TimeoutError, DimosStreamsError):
        note(f"the bridge has not answered yet ({to.name}){_MEANWHILE[order]}")
        return
    if order == "/calls/cancel" and left:
        note(f"{plural(left, 'call')} {'has' if left == 1 else 'have'} not ended yet ({to.name})")
    elif order == "/robots/stop":
        await asyncio.sleep(rest_s)
        note(f"the stop is not confirmed yet ({to.name}){_MEANWHILE[order]}")


async def _open_calls(address: BridgeAddress) -> int:
    """Return how many calls are open, but for those by which programs look at agents."""
    from dimos_streams.cli.bridge_client.declarations import Declarations

    async with open_gateway(address) as gateway:
        return len(await Declarations(gateway).without_looks(await gateway.calls(open_only=True)))


def _joint(robot: str, unknown: Mapping[str, UnknownRobotError]) -> UnknownRobotError:
    """Return the error for a robot that no run has, of those of all runs by their names."""
    having = {run: error.known for run, error in unknown.items() if error.known}
    if len(unknown) == 1 or not having:
        return next(iter(unknown.values()))
    listed = "; ".join(f"{', '.join(names)} of run {run}" for run, names in having.items())
    return UnknownRobotError(robot, {name for names in having.values() for name in names}, listed=listed)


async def _give(order: Order, body: Mapping[str, Any], to: OrderTarget) -> OrderResult | _Refusal:
    if to.address is None:
        why = to.why_unknown or (
            f"the run has no bridge that could do it; `dimos-streams stop {to.name}` ends all of it"
        )
        return OrderResult(to.name, False, f"NOT done: {why}", {})
    try:
        report = await _answer(order, body, to.address)
    except (UnknownRobotError, BadRequestError) as error:
        return error
    except CallInDoubtError as error:
        return OrderResult(to.name, False, f"NOT CONFIRMED: {error}", {})
    except DimosStreamsError as error:
        return OrderResult(to.name, False, f"NOT done: {error}", {})
    return OrderResult(to.name, report.done, report.text, report.model_dump(mode="json", exclude={"text"}))


async def _answer(order: Order, body: Mapping[str, Any], bridge: BridgeAddress) -> OrderReport:
    from dimos_streams.cli.bridge_client.answers import REPORT

    if order == "/robots/release":
        body = {**body, "seen": await _seen_stops(bridge, body["robot"])}

    async def post(timeout_s: float) -> OrderReport:
        return await bridge.post(order, body, REPORT, timeout_s=timeout_s, in_doubt=ORDER_IN_DOUBT[order])

    if order != "/robots/stop":
        return await post(ANSWER_S)

    def comes(error: Exception) -> bool:
        return isinstance(error.__cause__, NoAnswerError) and bridge.run_lives

    return await stop_until_answered(post, ANSWER_S, BridgeUnreachableError, comes=comes)


async def _seen_stops(address: BridgeAddress, robot: str) -> list[int]:
    """Return the stops that a release is about: those that there are before it is sent, by their ``utime``.

    Raises ``BridgeUnreachableError`` if a bridge does not say; a robot of a hub that does not is left out.
    """
    from dimos_streams.cli.bridge_client.answers import ROBOTS, RunRobots

    found = await address.get("/robots", ROBOTS)
    if isinstance(found, RunRobots):
        return found.utimes
    meant = robot.partition("/")[0]
    names = [each.name for each in found if each.connected and meant in ("", each.name)]
    each_of = await asyncio.gather(*(_seen_at_hub(address, name) for name in names))
    return [utime for utimes in each_of for utime in utimes]


async def _seen_at_hub(address: BridgeAddress, robot: str) -> list[int]:
    from dimos_streams.cli.bridge_client.answers import RUN_ROBOTS

    try:
        return (await address.get(f"/robots/{robot}/robots", RUN_ROBOTS)).utimes
    except BridgeUnreachableError:
        return []
