"""Requests whose answer is lost: each call begins once, and whoever asked hears what is known of it."""

from __future__ import annotations

import asyncio
import random

import pytest

from dimos_streams import clock
from dimos_streams.bridge.calls.stops import gate_watch
from dimos_streams.cli.bridge_client.connection import BridgeAddress, open_gateway
from dimos_streams.cli.bridge_client.operator_commands import command
from dimos_streams.cli.bridge_client.robot_orders import OrderTarget, give
from dimos_streams.cli.bridge_client.setting_changes import change_settings
from dimos_streams.client import asking_again
from dimos_streams.client.asking_again import ask_until_answered, stop_until_answered
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.client.orders import ANSWER_S
from dimos_streams.errors import CallInDoubtError, NoAnswerError, SkillError, UnknownAgentError, UnknownRobotError
from dimos_streams.hub.asking import BridgeRequest
from tests.agent.stage import stage
from tests.client.losing import TIMED_OUT, losing
from tests.helpers import until

DEAF = NoAnswerError("connection refused", may_have_arrived=False)
LOST = NoAnswerError("the connection was cut", may_have_arrived=True)
ABSENT = UnknownAgentError("no agent is here")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking_again, "_ASK_AGAIN_S", (0.01, 0.01))
    monkeypatch.setattr(gate_watch, "CONFIRM_S", 0.1)  # there is no gate


class Bridge:
    """A bridge that gives these answers, one after the other."""

    def __init__(self, *answers: str | SkillError) -> None:
        self.answers = list(answers)

    async def __call__(self) -> str:
        answer = self.answers.pop(0)
        if isinstance(answer, SkillError):
            raise answer
        return answer


@pytest.mark.virtual_time
async def test_a_bridge_that_is_back_and_has_not_heard_the_agent_is_asked_again() -> None:
    assert await ask_until_answered(Bridge(LOST, ABSENT, "done"), "?") == "done"
    with pytest.raises(UnknownAgentError):
        await ask_until_answered(Bridge(ABSENT, "done"), "?")
    assert await ask_until_answered(Bridge(DEAF, "done"), "?", arrived=True) == "done"
    with pytest.raises(NoAnswerError, match="refused"):
        await ask_until_answered(Bridge(DEAF, "done"), "?")
    with pytest.raises(CallInDoubtError, match="no agent is here; is it done"):
        await ask_until_answered(Bridge(LOST, LOST, ABSENT), "is it done?")


@pytest.mark.virtual_time
async def test_a_bridge_that_never_answers_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking_again, "_ASK_AGAIN_S", (0.01,) * 9)
    began = clock.monotonic()

    async def silent() -> str:
        await asyncio.sleep(ANSWER_S)
        raise LOST

    with pytest.raises(CallInDoubtError):
        await ask_until_answered(silent, "?")
    assert clock.monotonic() - began < 3.1 * ANSWER_S


@pytest.mark.virtual_time
async def test_a_stop_whose_answer_is_lost_is_given_to_the_next_bridge() -> None:
    async def stop(*answers: str | SkillError) -> str:
        bridge = Bridge(*answers)
        return await stop_until_answered(lambda left_s: bridge(), 1.0, NoAnswerError)

    in_doubt, unknown = CallInDoubtError("the connection was cut"), UnknownRobotError("arm", ())
    assert await stop(in_doubt, DEAF, "stopped") == "stopped"
    assert await stop(in_doubt, unknown, "stopped") == "stopped"
    for typed_wrong in (DEAF, unknown):
        with pytest.raises(type(typed_wrong)):
            await stop(typed_wrong, "stopped")
    with pytest.raises(CallInDoubtError):
        await stop(in_doubt, DEAF, DEAF)


@pytest.mark.virtual_time
async def test_a_stop_waits_for_a_bridge_that_is_being_restarted() -> None:
    async def stop(*answers: str | SkillError, lives: bool = True) -> str:
        bridge = Bridge(*answers)
        comes = lambda error: lives and isinstance(error, NoAnswerError)  # noqa: E731
        return await stop_until_answered(lambda left_s: bridge(), 1.0, NoAnswerError, comes=comes)

    unknown = UnknownRobotError("arm", ())
    assert await stop(DEAF, unknown, "stopped") == "stopped"
    with pytest.raises(NoAnswerError, match="refused"):
        await stop(DEAF, DEAF, DEAF)
    with pytest.raises(NoAnswerError, match="refused"):
        await stop(DEAF, "stopped", lives=False)
    with pytest.raises(UnknownRobotError):
        await stop(unknown, "stopped")


@pytest.mark.virtual_time
async def test_a_stop_is_not_given_again_when_its_time_is_over() -> None:
    began, given = clock.monotonic(), []

    async def silent(left_s: float) -> str:
        given.append(left_s)
        await asyncio.sleep(0.7)
        raise CallInDoubtError("nobody answers")

    with pytest.raises(CallInDoubtError):
        await stop_until_answered(silent, 1.0, NoAnswerError)
    assert given == pytest.approx([1.0, 0.29])
    assert clock.monotonic() - began == pytest.approx(1.41)


@pytest.mark.parametrize("by_command", [True, False])
def test_a_stop_whose_answer_was_lost_is_answered_and_stands_once(by_command: bool) -> None:
    async def main() -> None:
        async with stage(http=True) as s, losing(int(s.bridge.url.rpartition(":")[2]), answers=1) as url:
            if by_command:
                (report,) = await give("/robots/stop", "", "wet floor", [OrderTarget("run", BridgeAddress(url))])
                assert "no answer came" not in report.text
            else:
                await HttpGateway(url, rng=random.Random(1)).order("/robots/stop", reason="wet floor")
            assert [stop.reason for stop in s.bridge.broker.stops.stopped().stops] == ["wet floor"]

    asyncio.run(main())


def test_a_command_waits_longer_than_a_hub_waits_for_a_robot() -> None:
    assert BridgeRequest("robot1", "POST", "/robots/stop").within_s < ANSWER_S


def test_a_command_whose_answer_was_lost_is_done_once_and_its_end_is_heard() -> None:
    async def main() -> None:
        async with stage(http=True) as s:
            await until(lambda: "agent" in {view.name for view in s.bridge.broker.directory.modules() if view.skills})
            async with losing(int(s.bridge.url.rpartition(":")[2]), answers=1) as url:
                view = await command(HttpGateway(url, rng=random.Random(1)), "undo", {"count": 1})
            assert view.outcome == "completed"
            assert [call.call_id for call in await s.bridge.broker.calls()] == [view.call_id]

    asyncio.run(main())


def test_one_of_which_nobody_says_what_became_of_it_does_not_say_that_there_is_no_run() -> None:
    async def main() -> None:
        async with stage(http=True) as s:
            await until(lambda: "agent" in {view.name for view in s.bridge.broker.directory.modules() if view.skills})
            async with losing(int(s.bridge.url.rpartition(":")[2]), answers=99) as url:
                with pytest.raises(
                    CallInDoubtError, match="nobody knows whether it was carried out: `dimos-streams calls`"
                ):
                    async with open_gateway(BridgeAddress(url)) as gateway:
                        await command(gateway, "undo", {"count": 1})
            assert len(await s.bridge.broker.calls()) == 1

    asyncio.run(main())


@pytest.mark.parametrize("instead", [b"", TIMED_OUT])
def test_what_is_called_or_said_begins_once_though_the_answer_was_lost(instead: bytes) -> None:
    async def main() -> None:
        async with stage(http=True) as s:
            await until(lambda: "agent" in {view.name for view in s.bridge.broker.directory.modules() if view.skills})
            port = int(s.bridge.url.rpartition(":")[2])
            async with losing(port, answers=1, instead=instead) as url:
                begun = await HttpGateway(url, rng=random.Random(1)).begin("say", {"text": "hello"}, caller="me")
            async with losing(port, answers=1, instead=instead) as url:
                called = await HttpGateway(url, rng=random.Random(1)).call("say", {"text": "hello"}, caller="me")
            assert [call.call_id for call in await s.bridge.broker.calls()] == [begun.call_id, called]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("instead", "why"),
    [
        (b"", "Remote end closed connection without response"),
        (TIMED_OUT, "HTTP 504 Gateway Time-out"),
        (TIMED_OUT.replace(b"504", b"502"), "HTTP 502 Gateway Time-out"),
    ],
)
def test_an_order_whose_answer_was_lost_is_not_said_to_be_undone(instead: bytes, why: str) -> None:
    async def main() -> None:
        async with stage(http=True) as s:
            port = int(s.bridge.url.rpartition(":")[2])
            async with losing(port, answers=99, instead=instead) as url:
                to = [OrderTarget("run", BridgeAddress(url))]
                (stopped,) = await give("/robots/stop", "", "wet floor", to)
                assert not stopped.done
                assert stopped.text.startswith(f"NOT CONFIRMED: no answer came from the bridge at {url} ({why})")
                assert "nobody knows whether it was carried out" in stopped.text
                assert "`dimos-streams status`" in stopped.text
                with pytest.raises(CallInDoubtError, match="`dimos-streams status`"):
                    await HttpGateway(url, rng=random.Random(1)).order("/robots/release")
                with pytest.raises(CallInDoubtError, match="nobody knows whether it was carried out"):
                    await change_settings(BridgeAddress(url), ["agent.max_turns=3"])

    asyncio.run(main())
