"""Whatever a model says, in whatever length: the operator's calls hold, and no mission goes on without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from dimos_streams.agent.context.entry import Entry
from dimos_streams.agent.models.protocol import (
    Cut,
    Finish,
    ModelDelta,
    ModelRequest,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from dimos_streams.agent.record.agent_events import EventKind
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.readable.json_cut import cut_to
from dimos_streams.errors import SkillArgumentError
from dimos_streams.testing.bus_calls import request_call
from dimos_streams.tool_stream.arguments.defaults import checked_arguments
from dimos_streams.tool_stream.arguments.schemas import check_arguments
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS, MAX_PAYLOAD
from tests.agent.policies.brain import Brain
from tests.agent.policies.gate_inputs import offered
from tests.agent.policies.lookout_world import lookout_world, round_with
from tests.agent.policies.robot_stage import decide, robot_stage
from tests.agent.stage import stage
from tests.helpers import until

END = Finish("tool_calls")


class Raw(Brain):
    """A model that streams these deltas, an answer at a time, then "done"."""

    def __init__(self, *answers: Sequence[ModelDelta]) -> None:
        super().__init__()
        self._raw = list(answers)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """See ``Model``."""
        self.requests.append(request)
        for delta in self._raw.pop(0) if self._raw else (TextDelta("done"), Finish("stop")):
            yield delta


def asked(name: str, id: str = "t1", index: int = 0, **arguments: Any) -> ToolCallDelta:
    return ToolCallDelta(index=index, id=id, name=name, arguments=json.dumps(arguments))


@pytest.mark.feature("D4")
@pytest.mark.parametrize(
    "answer",
    [
        [asked("look", id="i" * 60_000), END],
        [asked("l" * 99_000), END],
        [ToolCallDelta(index=0, id="t1", name="look", arguments="{}", extra={"extra_content": "x" * 500_000}), END],
        [asked("look", id="\0" * 900, index=n) for n in range(30)] + [END],
        [TextDelta("\0" * 4000), *(asked("\1" * 150, id=f"{n}" * 400, index=n, a="😀" * 500) for n in range(9)), END],
        [*(asked("look", id=f"{n}", index=n) for n in range(3000)), END],
        [ToolCallDelta(index=0, id="t1", name="look", arguments='{"%s": 1}' % ("n" * 60_000)), END],
    ],
    ids=["id", "name", "extra", "many long ids", "all at once", "too many calls", "argument"],
)
@pytest.mark.slow
@pytest.mark.virtual_time
async def test_long_parts_of_an_answer_do_not_cut_the_mission_off(answer: list[ModelDelta]) -> None:
    brain = Raw([asked("follow")], answer)
    brain._raw[0] = [*brain._raw[0], END]
    async with robot_stage(brain) as (made, robot):
        said = await made.say("go")
        await until(lambda: len(brain.requests) > 2)
        robot.done.set()
        close = await said.closed()
        assert close.outcome is Outcome.COMPLETED, close.text
        assert len(json_text([str(message) for message in brain.requests[-1].messages])) < 400_000


@pytest.mark.feature("D4")
@pytest.mark.parametrize("end", [Finish("r" * 100_000), Cut("c" * 100_000)], ids=["finish", "cut"])
@pytest.mark.virtual_time
async def test_a_long_reason_ends_the_mission_with_its_beginning(end: ModelDelta) -> None:
    async with robot_stage(Raw([TextDelta("well"), end])) as (made, _):
        close = await (await made.say("go")).closed()
        assert close.outcome is Outcome.FAILED
        assert "the mission did not complete: " in close.text
        assert len(close.text) < 1000
        assert close.data["result"]["text"] == "well"


@pytest.mark.feature("D4", "B5")
@pytest.mark.virtual_time
async def test_a_say_that_fails_ends_its_mission_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(entry: Entry) -> dict[str, Any]:
        if entry.role == "tool":
            raise ValueError("a bug")
        return {"text": entry.text}

    monkeypatch.setattr(Entry, "to_dict", broken)

    async with robot_stage(Brain([("follow", {})], "I follow")) as (made, _):
        close = await (await made.say("go")).closed()
        assert close.outcome is Outcome.FAILED
        assert "the mission was ended, and its calls are cancelled" in close.text
        assert "a bug" in close.text
        await until(lambda: not made.agent.core.loop.missions)
        (follow,) = [view for view in await made.bridge.broker.calls() if view.skill == "follow"]
        assert follow.outcome is Outcome.CANCELLED


@pytest.mark.feature("D5", "B5")
@pytest.mark.virtual_time
async def test_arguments_of_any_length_keep_nobody_from_watching_and_deciding() -> None:
    brain = Brain([("drop", {"what": f"{letter}{'x' * 39_900}"}) for letter in "ab"], "ok")
    async with robot_stage(brain) as (made, _):
        report = await made.harness.call("report", caller="monitor")
        said = await made.say("go")
        for _ in range(2):
            view = await decide(made, "reject", reason="too long")
            assert view["skill"] == "drop"
        assert (await said.result())["text"] == "ok"
        await asyncio.sleep(1)
        assert not report.texts("close")
        report.cancel()


@pytest.mark.feature("D5", "D4")
@pytest.mark.virtual_time
async def test_nobody_is_asked_about_arguments_that_no_request_can_carry() -> None:
    room = MAX_ARGUMENTS - len(json_text({"what": ""}))
    brain = Brain([("drop", {"what": "x" * (room + 1)})], [("drop", {"what": "x" * room})], "ok")
    async with robot_stage(brain) as (made, robot):
        said = await made.say("go")
        await until(made.agent.core.gate_state.approvals.pending)
        (view,) = made.agent.core.gate_state.approvals.pending()
        assert len(view.arguments["what"]) == room, "the first was refused, and nobody was asked"
        refusal = made.entries("tool")[0].text
        assert f"'drop' cannot take these arguments: arguments: they have {MAX_ARGUMENTS + 1} bytes" in refusal
        with pytest.raises(SkillArgumentError, match=f"{MAX_ARGUMENTS} are possible"):
            made.agent.core.gate_state.approvals.amend(view.id, {"what": "y" * (room + 1)})
        made.agent.core.gate_state.approvals.decide(view.id, "approve")
        assert (await said.result())["text"] == "ok"
        assert robot.log_ == [f"drop {'x' * room}"], "what is asked about can be run"


@pytest.mark.feature("D4")
@pytest.mark.virtual_time
async def test_what_no_review_can_carry_is_refused_by_the_name_of_the_skill_that_was_asked_for() -> None:
    """The call itself could be; with who asks for it, which the agent is told, it is a little larger."""
    async with lookout_world(Brain(round_with("drop", what="x" * 39_915))) as w:
        await w.closed(await w.say())
        (refused,) = await w.views("drop")
        assert refused.outcome is Outcome.REJECTED
        assert "skill 'drop' cannot take these arguments: arguments: they have 40" in refused.text
        assert await w.views("review_call") == []
        assert w.robot.log_ == []


def test_defaults_that_are_filled_in_count_as_well() -> None:
    long = {"type": "string", "default": "x" * MAX_ARGUMENTS}
    skill = offered(parameters={"type": "object", "properties": {"text": long, "n": {"type": "integer"}}})
    with pytest.raises(SkillArgumentError, match=f"bytes, {MAX_ARGUMENTS} are possible"):
        checked_arguments(skill, {"n": 1})
    assert checked_arguments(skill, {"n": 1, "text": ""}) == {"n": 1, "text": ""}


@pytest.mark.feature("D5")
@pytest.mark.virtual_time
async def test_many_approvals_and_plans_fit_into_an_answer() -> None:
    steps = [{"skill": "drop", "arguments": {"what": "x" * 700}}] * 20
    plans = [("create_plan", {"goal": f"{n}" * 9000, "steps": steps}) for n in range(3)]
    asked = [("follow", {"who": f"{n:03d}{'y' * 2000}"}) for n in range(40)]
    rules = {"rules": [{"skill": "follow"}]}
    limits = {"parallel_calls": 40, "calls_per_answer": None}
    async with robot_stage(Brain(plans, [asked[0]]), approval=rules, limits=limits) as (made, _):
        said = await made.say("go")
        await until(made.agent.core.gate_state.approvals.pending)
        book = made.agent.core.gate_state.approvals
        asking = [asyncio.create_task(book.ask(name, arguments)) for name, arguments in asked[1:]]
        await until(lambda: len(book.pending()) == 40)
        listed = await (await made.harness.call("approvals", caller="operator")).result()
        assert len(listed) == 40
        written = await (await made.harness.call("plans", caller="operator")).result()
        assert [plan["id"] for plan in written] == ["plan-1", "plan-2", "plan-3"]
        for task in asking:
            task.cancel()
        said.cancel()
        await said.closed()


@pytest.mark.feature("D4")
@pytest.mark.parametrize("character", ["😀", "\0", "x"])
@pytest.mark.virtual_time
async def test_long_last_words_are_cut_and_the_mission_is_complete(character: str) -> None:
    async with robot_stage(Brain(character * 19_000)) as (made, _):
        close = await (await made.say("go")).closed()
        assert close.outcome is Outcome.COMPLETED, close.text
        text = close.data["result"]["text"]
        assert text.startswith(character * 1000)
        assert text.endswith("x" if character == "x" else "of 19000 characters are left out here]")


@pytest.mark.feature("D4")
@pytest.mark.virtual_time
async def test_operators_get_an_answer_whole_beside_the_signatures_of_its_thoughts() -> None:
    async with stage() as s:
        request_call(s.harness.bus, "r", module="agent", skill="report", caller="operator", arguments={})
        await until(lambda: any(each.text == "reporting" for each in s.harness.events()))
        signed = {"reasoning_details": [{"data": "x" * 90_000}]}
        s.agent.core.events.emit(
            EventKind.ANSWER, text="t" * 3000, finish="stop", tool_calls=[], thought_details=signed
        )
        await until(lambda: any(each.text == "answer" for each in s.harness.events()))
        (told,) = (each.data["event"]["data"] for each in s.harness.events() if each.text == "answer")
        assert told == {"text": "t" * 3000, "finish": "stop", "tool_calls": []}


def test_entries_fit_into_an_event_with_their_line() -> None:
    call = ToolCall("\0" * 1000, "\1" * 201, "\2" * 100_000)
    entry = Entry(
        number=1, utime=1, role="assistant", text="\3" * 100_000, finish="\4" * 100, tool_calls=(call,) * 1000
    )
    assert len(json_text(entry.to_dict())) < MAX_PAYLOAD - 4 * 2000
    small = Entry(number=2, utime=1, role="assistant", text="hello", tool_calls=(ToolCall("a", "b", "c"),))
    assert small.to_dict()["tool_calls"] == [{"id": "a", "skill": "b", "arguments": "c"}]


@pytest.mark.parametrize("text", ["", "hello", "😀" * 100, '\0"\\' * 100])
def test_texts_are_cut_to_bytes_of_json(text: str) -> None:
    for most in range(60, 800, 7):
        cut = cut_to(text, most)
        assert len(json_text(cut).encode()) <= most
        assert cut == text or f"of {len(text)} characters are left out" in cut
    assert cut_to(text, 10_000) == text


def test_of_bad_arguments_a_bounded_number_is_named() -> None:
    skill = offered(parameters={"type": "object", "properties": {}, "additionalProperties": False})
    with pytest.raises(SkillArgumentError) as caught:
        check_arguments(skill, {f"{n:04d}{'a' * 1000}": 1 for n in range(1000)})
    assert len(str(caught.value)) < 10_000
