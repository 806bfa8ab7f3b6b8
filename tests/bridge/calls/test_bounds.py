"""What the broker takes on is bounded, and there is room again when something has ended."""

from __future__ import annotations

import asyncio
import json
import tracemalloc

import pytest

from dimos_streams.bridge.calls import call_admission
from dimos_streams.bridge.calls.state.call_state import CallState
from dimos_streams.bridge.calls.state.unsolicited_calls import UNSOLICITED_BYTES
from dimos_streams.errors import CallRejectedError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.module import Module
from dimos_streams.skill import MAX_RESOURCES, skill
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS
from tests.bridge.monitor.toy_agent import agents
from tests.bridge.scene import answered, closed, event, scene
from tests.helpers import until


@pytest.mark.virtual_time
async def test_open_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_admission, "_FOR_OTHERS", call_admission._Room(open=3, waiting=9))

    async with scene() as world:
        broker = world.broker
        ids = [await broker.call("count", {"label": label, "to": 10}, caller="you") for label in "abc"]
        for _ in range(5):
            with pytest.raises(CallRejectedError, match="too many calls are open"):
                await broker.call("count", {"label": "d", "to": 1}, caller="you")
        await closed(broker, ids[0])
        await closed(broker, await broker.call("count", {"label": "d", "to": 1}, caller="you"))


@pytest.mark.virtual_time
async def test_mcp_clients_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_admission, "_FOR_MODELS", call_admission._Room(open=1, waiting=9))
    async with scene() as world:
        await world.broker.call("patrol", {}, caller="mcp/a")
        with pytest.raises(CallRejectedError, match="too many calls are open"):
            await world.broker.call("count", {"label": "a", "to": 1}, caller="mcp/a")
        await world.broker.call("count", {"label": "a", "to": 1}, caller="you")


@pytest.mark.feature("C6")
@pytest.mark.parametrize("full", ["open", "waiting"])
@pytest.mark.virtual_time
async def test_whoever_fills_all_room_keeps_no_operator_from_an_agent(
    full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = {"open": 99, "waiting": 99, full: 3}
    monkeypatch.setattr(call_admission, "_FOR_OTHERS", call_admission._Room(**room))
    monkeypatch.setattr(call_admission, "_FOR_MODELS", call_admission._Room(**{**room, full: 2}))
    async with agents("agent") as (world, made):
        broker = world.broker
        await broker.call("follow", {"description": "ann"}, caller="you")

        async def fill(caller: str, most: int) -> None:
            """One that holds nothing is open at once; one that needs what is held waits."""
            skill, arguments = (
                ("count", {"label": caller, "to": 10_000}) if full == "open" else ("at_once", {"value": 1})
            )
            calls = [
                asyncio.create_task(
                    broker.call(
                        skill, arguments, caller=caller, idempotency_key=f"{caller}/{number}", lease_wait_s=600
                    )
                )
                for number in range(most + 1)
            ]
            await until(lambda: calls[-1].done())
            assert "too many calls are open or waiting" in str(calls[-1].exception())

        await fill("agent", 2 if full == "waiting" else 1)
        await fill("you", 1)
        assert (await closed(broker, await broker.call("pause", {}, caller="cli"))).outcome == "completed"
        await answered(broker, await broker.call("say", {"text": "stop"}, caller="cli"))
        assert [name for name, _ in made["agent"].commands] == ["pause"]


class Oracle(Module):
    """An agent with a skill for everyone."""

    @skill(audience="bridge")
    async def review_call(self) -> None:
        """Look at nothing."""

    @skill
    async def guess(self) -> str:
        """Guess."""
        return "seven"


@pytest.mark.virtual_time
async def test_what_a_skill_asks_of_an_agent_is_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_admission, "_FOR_OTHERS", call_admission._Room(open=1, waiting=9))

    async with scene() as world:
        await world.add(Oracle(name="oracle"))
        await world.offered("guess")
        asking = await world.broker.call("chain", {"then": "guess", "arguments": {}}, caller="you")
        view = await closed(world.broker, asking)
        assert (view.outcome, "too many calls are open" in view.text) == (Outcome.FAILED, True)
        await answered(world.broker, await world.broker.call("follow", {"description": "ann"}, caller="you"))
        order = await world.broker.call("guess", {}, caller="you")
        assert (await closed(world.broker, order)).result == "seven"


@pytest.mark.virtual_time
async def test_calls_that_wait_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_admission, "_FOR_OTHERS", call_admission._Room(open=9, waiting=2))

    async with scene() as world:
        broker = world.broker
        first = await broker.call("follow", {"description": "ann"}, caller="you")
        waiting = [
            asyncio.create_task(broker.call("at_once", {"value": value}, caller="you", lease_wait_s=60))
            for value in range(2)
        ]
        await asyncio.sleep(1)
        with pytest.raises(CallRejectedError, match="too many calls are open or waiting"):
            await broker.call("count", {"label": "a", "to": 1}, caller="you")
        await broker.cancel(first, "enough")
        for task in waiting:
            await closed(broker, await task)
        await closed(broker, await broker.call("count", {"label": "a", "to": 1}, caller="you"))


@pytest.mark.virtual_time
async def test_calls_that_were_begun_without_the_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dimos_streams.bridge.calls.state.unsolicited_calls.MAX_UNSOLICITED", 2)

    async with scene() as world:
        ledger = world.broker.ledger
        ledger.enter([event(1, "open", call_id=f"c{number}") for number in range(3)])
        assert ([call.call_id for call in ledger.calls.open], ledger.ignored) == (["c0", "c1"], 1)
        ledger.enter([event(2, "close", call_id="c0")])
        await closed(world.broker, await world.broker.call("count", {"label": "a", "to": 1}, caller="you"))
        ledger.enter([event(1, "open", call_id="c3"), event(1, "open", call_id="c4")])
        assert ([call.call_id for call in ledger.calls.open], ledger.ignored) == (["c1", "c3"], 2)


def test_a_call_takes_little_memory_besides_what_is_said_of_it() -> None:
    calls = []
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(500):
        calls.append(CallState(call_id="c", skill="s", module="m", caller="c", requested_utime=1))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken / len(calls) < 1500


@pytest.mark.virtual_time
async def test_calls_that_were_begun_without_the_bridge_hold_few_resources() -> None:
    """Each names more than a skill may; all of them count as memory."""
    async with scene() as world:
        ledger = world.broker.ledger
        for number in range(150):
            uses = ["", 1, "long" * 1000, *(f"{number}/my arm {each}" for each in range(1000))]
            ledger.enter([event(1, "open", call_id=f"c{number}", data={"resources": uses, "parent": "p" * 9999})])
        calls = ledger.calls.open
        assert {(call.parent, len(call.resources)) for call in calls} == {("", MAX_RESOURCES - 3)}
        assert 50 < len(calls) < UNSOLICITED_BYTES / (500 * (MAX_RESOURCES - 3))
        assert len(ledger.leases.holders()) == len(calls) * (MAX_RESOURCES - 3)


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_what_calls_that_were_begun_without_the_bridge_say_takes_bounded_memory() -> None:
    """Their JSON is small and makes large objects; texts, answers, arguments and newest events count."""
    large = json.dumps([{}] * 15_000)

    async with scene() as world:
        ledger = world.broker.ledger
        tracemalloc.start()
        for number in range(100):
            arguments = {"deep": json.loads(large)} if number % 2 else {}
            ledger.enter([event(1, "open", call_id=f"c{number}", data={"arguments": arguments})])
            update = {"deep": json.loads(large), "share": 0.5}
            text = f"{number}" * 10_000
            ledger.enter([event(2, "update", call_id=f"c{number}", text=text, data=update)])
            ledger.enter([event(3, "progress", call_id=f"c{number}", text=text, data=update)])
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        # The journal's newest events are in memory, too, as JSON.
        assert taken < 20e6
        small = [call for call in ledger.calls.open if int(call.call_id[1:]) % 2 == 0]
        assert [(call.last_seq, dict(call.progress)) for call in small] == [(3, {"share": 0.5})] * 50
        assert not any(call.arguments for call in ledger.calls.open), "those are too large"
        for number in range(100):
            ledger.enter([event(4, "close", call_id=f"c{number}", data={"outcome": "completed"})])
        assert ledger.calls.open == []
        ledger.enter([event(1, "open", call_id="new")])
        assert [call.call_id for call in ledger.calls.open] == ["new"], "there is room again"


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_requests_that_no_open_call_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dimos_streams.bridge.calls.bus_requests._MAX_FROM_NOWHERE", 2)

    async with scene() as world:
        broker = world.broker

        def request(call_id: str, parent: str) -> None:
            message = SkillCall(call_id=call_id, skill="search", parent=parent, arguments_json="{}")
            world.inner.publish(CALLS, encode(message))

        def refused() -> list[str]:
            return [call.call_id for call in broker.ledger.calls if call.outcome is Outcome.REJECTED]

        parent = await broker.call("follow", {"description": "ann"}, caller="you")
        await answered(broker, parent)
        for call_id in ("n1", "n2", "n3"):
            request(call_id, "nobody-knows-it")
        request("child", parent)
        await until(lambda: broker.ledger.calls.get("child") is not None)
        await until(lambda: len(refused()) == 2)
        await asyncio.sleep(5)
        assert refused() == ["n1", "n2"]
        request("n4", "nobody-knows-it")
        await until(lambda: refused() == ["n1", "n2", "n4"])


@pytest.mark.virtual_time
async def test_a_key_whose_call_waits_to_begin_is_not_forgotten_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dimos_streams.bridge.calls.idempotency._KEYS", 2)
    monkeypatch.setattr("dimos_streams.bridge.calls.idempotency._ALL_KEYS", 8)
    async with scene() as world:
        broker = world.broker
        holder = await broker.call("follow", {"description": "ann"}, caller="other")

        async def wait() -> str:
            return await broker.call("at_once", {"value": 1}, caller="me", idempotency_key="k", lease_wait_s=60)

        waiting = [asyncio.create_task(wait())]
        await until(lambda: broker.ledger.waiting)
        for number in range(4):
            await broker.call(
                "count", {"label": f"{number}", "to": 1}, caller="me", idempotency_key=f"other {number}"
            )
        for number in range(20):  # of callers with fewer keys than the one whose call waits
            await broker.call("count", {"label": "a", "to": number}, caller=f"c{number}", idempotency_key="k")
        assert broker._keys._count == 8
        waiting.append(asyncio.create_task(wait()))
        await asyncio.sleep(1.0)
        assert len(broker.ledger.waiting) == 1, "who asks again waits for the same call"
        await broker.cancel(holder, "enough")
        assert len(set(await asyncio.gather(*waiting))) == 1


@pytest.mark.virtual_time
async def test_idempotency_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dimos_streams.bridge.calls.idempotency._KEYS", 2)

    async with scene() as world:

        async def count(key: str) -> str:
            arguments = {"label": key, "to": 1}
            return await world.broker.call("count", arguments, caller="you", idempotency_key=key)

        ids = [await count(key) for key in "abc"]
        assert [await count(key) for key in "cb"] == [ids[2], ids[1]]
        assert await count("a") not in ids, "the oldest was forgotten"


@pytest.mark.virtual_time
async def test_keys_of_one_caller_push_out_none_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dimos_streams.bridge.calls.idempotency._KEYS", 3)
    monkeypatch.setattr("dimos_streams.bridge.calls.idempotency._ALL_KEYS", 5)

    async with scene() as world:

        async def count(caller: str, key: str) -> str:
            arguments = {"label": f"{caller} {key}", "to": 1}
            return await world.broker.call("count", arguments, caller=caller, idempotency_key=key)

        mine = [await count("me", key) for key in "ab"]
        theirs = [await count("they", key) for key in "abcdef"]
        others = await count("another", "a")
        assert [await count("me", key) for key in "ab"] == mine
        assert await count("another", "a") == others
        assert [await count("they", key) for key in "fe"] == [theirs[5], theirs[4]]
        assert await count("they", "d") != theirs[3], "it has the most, and loses the oldest of its own"
