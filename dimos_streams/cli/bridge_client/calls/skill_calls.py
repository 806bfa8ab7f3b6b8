"""Calls that a command begins over a bridge, and follows to their answer or their close."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dimos_streams import clock
from dimos_streams.cli.bridge_client.agents import begin_at_agent, find_addressee
from dimos_streams.cli.bridge_client.calls.beginning import begin_in_turn
from dimos_streams.cli.bridge_client.calls.call_list import call_among
from dimos_streams.cli.bridge_client.calls.event_watch import EventWatch, Milestone, watching
from dimos_streams.cli.bridge_client.calls.holds import naming_holders
from dimos_streams.cli.bridge_client.calls.mission_show import MissionShow
from dimos_streams.cli.bridge_client.calls.paused_agents import AgentPausedError, wait_unless_paused
from dimos_streams.cli.bridge_client.calls.showing import show_end, show_with, without_needless_gaps
from dimos_streams.cli.bridge_client.declarations import Declarations
from dimos_streams.cli.system.async_runner import finish
from dimos_streams.cli.terminal.output import note
from dimos_streams.cli.terminal.reporter import create_reporter
from dimos_streams.client.asking_again import IN_DOUBT, ask_until_answered
from dimos_streams.errors import OutputError, SkillError
from dimos_streams.operator.known_names import CLI, SAY
from dimos_streams.tool_stream.gateway import CallTerms

if TYPE_CHECKING:
    from dimos_streams.client.http_gateway import Begun, HttpGateway
    from dimos_streams.tool_stream.event import ToolEvent
    from dimos_streams.tool_stream.gateway import CallView, SkillGateway

_CLOSE_BOUND_S = 3.0
_UNANSWERED_S = 10.0
"""Time, in seconds, after which whoever waits for an answer is told what is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """The options of a call on the command line: how it begins, how far it is followed, and how it is shown."""

    until: Milestone
    timeout_s: float | None
    as_json: bool
    caller: str = CLI
    terms: CallTerms = field(default_factory=CallTerms)
    """Its terms; with an idempotency key the call may be one that has begun already."""
    lease_wait_s: float = 0.0
    """Time, in seconds, for which it may wait for what another call holds."""
    bridge_options: str = ""
    """The options that name its bridge, as typed behind a command; empty if there are none."""
    agent: str | None = None
    """The agent whose skill is called, ``""`` for the only one; None if the skill has a public name."""
    robot: str | None = None
    """The robot of a fleet whose skill is called; None leaves that to the skill's name."""
    outwaits_pause: bool = True
    """Whether what is said to an agent that is paused may wait until it is resumed, however long that takes."""

    @property
    def waits_s(self) -> float:
        """The time, in seconds, for which it waits for what another call holds."""
        return self.lease_wait_s if self.timeout_s is None else min(self.lease_wait_s, self.timeout_s)


async def follow_new_call(
    gateway: HttpGateway, skill: str, arguments: Mapping[str, Any], options: CallOptions, *, only: bool
) -> ToolEvent:
    """Begin a call and show its events, or with ``only`` False those of the mission that it begins; return the event
    waited for.

    When time is up, we are cancelled or our output can't be written, the call is cancelled and its close still shown,
    also that of a call which had begun already with the same key: both commands have asked for this one. A decision
    that is waited for is said on standard error: whoever only keeps what a call says would wait for it in vain. A
    wait for what another call holds counts: nobody expects the robot to move so late.
    """
    reporter = create_reporter(as_json=options.as_json, with_data=only)
    began = clock.monotonic()
    call_id, offset = await _begin(gateway, skill, arguments, options)
    waited_s = clock.monotonic() - began
    with contextlib.closing(reporter):
        one = call_id if only else None
        show = show_with(reporter, call_id, as_json=options.as_json)
        show = show if only else MissionShow(show, call_id, bridge=options.bridge_options)
        async with (
            watching(gateway, show, after=offset, call_id=one, robot=options.robot) as watch,
            naming_holders(gateway, watch, call_id, options.bridge_options),
        ):
            return await _reach_or_end(gateway, watch, call_id, options, waited_s)


def how_to_end(module: str) -> str:
    """Advice for who meets a call of a module that does not end though it was asked to."""
    return f"`dimos-streams restart {module}` ends what does not listen"


async def _reach_or_end(
    gateway: HttpGateway, watch: EventWatch, call_id: str, options: CallOptions, waited_s: float
) -> ToolEvent:
    """Return the event of our call that is waited for; end the call where that is waited for no longer. Raises
    ``SkillError`` where it goes on, or is taken back."""

    async def end(why: str) -> None:
        await finish(_end(gateway, watch, call_id, why, options.robot))

    try:
        keyed = options.terms.get("idempotency_key") is not None
        closed = await _find_closed(gateway, call_id, options.robot) if keyed else None
        return await _wait_until_reached(watch, call_id, options, closed, waited_s)
    except TimeoutError:
        await end(f"the caller waited {options.timeout_s:g} s")
        if (event := watch.open.get(call_id)) is not None:
            raise SkillError(f"call {call_id} was asked to end but goes on; {how_to_end(event.module)}") from None
        return await watch.wait(call_id, "close")
    except AgentPausedError as error:
        await end("the agent is paused")
        resume = f"`dimos-streams resume{options.bridge_options}`"
        raise SkillError(
            f"{error}, so this is taken back: say it after {resume}, or wait for that with --timeout SECONDS"
        ) from None
    except (asyncio.CancelledError, OutputError):
        await end("the caller left")
        raise


async def follow_call(gateway: HttpGateway, start: str, options: CallOptions) -> ToolEvent:
    """Show what the call says, and has said, whose id begins so; return the event waited for, the close of one that
    is closed already.

    The call goes on when time is up or we are cancelled. Raises ``UserError`` for an unknown id, and ``SkillError``
    when time is up.
    """
    view = await find_call(gateway, start, options.robot)
    closed = view if view.state == "closed" else None
    options = replace(options, agent="" if await Declarations(gateway).is_talk(view) else None)
    if closed is not None:
        options = replace(options, until="close", timeout_s=None)
    goes_on = f"call {view.call_id} goes on: `dimos-streams cancel {shlex.quote(view.call_id)}` ends it"
    with contextlib.closing(create_reporter(as_json=options.as_json, with_data=True)) as reporter:
        show = without_needless_gaps(show_with(reporter, view.call_id, as_json=options.as_json))
        async with (
            watching(gateway, show, after=0, call_id=view.call_id, robot=view.robot) as watch,
            naming_holders(gateway, watch, view.call_id, options.bridge_options),
        ):
            try:
                return await _wait_until_reached(watch, view.call_id, options, closed)
            except TimeoutError:
                raise SkillError(f"after {options.timeout_s:g} s {goes_on}") from None
            except asyncio.CancelledError:
                if closed is None:
                    note(goes_on)
                raise


async def _wait_until_reached(
    watch: EventWatch, call_id: str, options: CallOptions, closed: CallView | None, waited_s: float = 0.0
) -> ToolEvent:
    """Return the event of a call that is waited for; ``closed`` is the call if it has ended already. Raises
    ``TimeoutError`` when its time is up, of which ``waited_s`` seconds are over, and ``AgentPausedError`` where the
    call waits behind a pause that the options do not outwait."""
    async with asyncio.timeout(None if options.timeout_s is None else options.timeout_s - waited_s):
        if closed is not None:
            await show_end(watch, closed)
        with _note_if_unanswered(options, call_id):
            if options.outwaits_pause:
                return await watch.wait(call_id, options.until)
            return await wait_unless_paused(watch, call_id, options.until)


async def _find_closed(gateway: HttpGateway, call_id: str, robot: str | None) -> CallView | None:
    """Return a call if it is known and closed."""
    views = await gateway.calls()
    known = (view for view in views if view.call_id == call_id and robot in (None, view.robot))
    return next((view for view in known if view.state == "closed"), None)


@contextlib.contextmanager
def _note_if_unanswered(options: CallOptions, call_id: str) -> Iterator[None]:
    """Say once on standard error that a skill has not answered, if it takes long. An agent answers when it can."""
    if options.until != "answer" or options.agent is not None:
        yield
        return
    text = f"call {call_id} has not answered for {_UNANSWERED_S:g} s"
    text += ": progress does not answer, an update or the end does"
    timer = asyncio.get_running_loop().call_later(_UNANSWERED_S, note, text)
    try:
        yield
    finally:
        timer.cancel()


async def _begin(gateway: HttpGateway, skill: str, arguments: Mapping[str, Any], options: CallOptions) -> Begun:
    async def ask(wait_s: float) -> Begun:
        async def begin(name: str, agent: str | None) -> Begun:
            return await gateway.begin(
                name,
                arguments,
                caller=options.caller,
                agent=agent,
                lease_wait_s=wait_s,
                robot=options.robot,
                **options.terms,
            )

        if options.agent is None:
            return await begin(skill, None)
        return await begin_at_agent(gateway, options.agent, skill, begin)

    async def cancel(call_id: str) -> None:
        await gateway.cancel(call_id, "the caller left", robot=options.robot)

    return await begin_in_turn(ask, cancel, options.waits_s)


async def follow_saying(gateway: HttpGateway, arguments: Mapping[str, Any], options: CallOptions) -> ToolEvent:
    """Say something and follow it as ``follow_new_call`` does: to the agent that is chosen or the only one, or of
    several to the one with whose name and a colon the text begins.

    Unless it begins so nobody is asked beforehand who is there: it may be a stop.
    """
    if not options.agent:
        agent, text = await find_addressee(gateway, arguments["text"])
        arguments, options = {**arguments, "text": text}, replace(options, agent=agent)
    return await follow_new_call(gateway, SAY, arguments, options, only=False)


async def cancel_call(gateway: HttpGateway, start: str, reason: str, robot: str | None = None) -> CallView:
    """Cancel the call whose id begins so, of one ``robot`` of a fleet if that is given; return the call after its
    close, or as it is after a bound. One that has ended is left as it is, with a note."""
    view = await find_call(gateway, start, robot)
    if view.state == "closed":
        note(f"call {view.call_id} is over already")
        return view
    async with watching(gateway, lambda event: None, after=0, call_id=view.call_id, robot=view.robot) as watch:
        await _end(gateway, watch, view.call_id, reason, view.robot)
    return await ask_until_answered(lambda: find_call(gateway, view.call_id, view.robot), IN_DOUBT, arrived=True)


async def find_call(gateway: SkillGateway, start: str, robot: str | None = None) -> CallView:
    """Return the call whose id begins so, see ``call_among``."""
    return call_among(await gateway.calls() if start else [], start, robot)


async def _end(gateway: HttpGateway, watch: EventWatch, call_id: str, reason: str, robot: str | None = None) -> None:
    """Cancel a call and give it a moment to close."""
    await ask_until_answered(lambda: gateway.cancel(call_id, reason, robot=robot), IN_DOUBT)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(watch.wait(call_id, "close"), _CLOSE_BOUND_S)
