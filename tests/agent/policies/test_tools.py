"""Local tools: schemas, checks, errors."""

from __future__ import annotations

import asyncio
from typing import Annotated

import pytest
from pydantic import Field

from dimos_streams.agent.missions.mission import Mission
from dimos_streams.agent.tools.call_result import CallResult
from dimos_streams.agent.tools.local_tools import Arguments, LocalTool, LocalTools, NoArguments
from dimos_streams.errors import SkillError


class Count(Arguments):
    """The arguments of the tool."""

    count: Annotated[int, Field(ge=1, description="How many.")]


async def answer(arguments: Count, missions: tuple[Mission, ...]) -> str:
    if arguments.count == 13:
        raise SkillError("13 brings bad luck")
    if arguments.count == 14:
        raise RuntimeError("secret")
    return "x" * arguments.count


def run(tools: LocalTools, **arguments: object) -> CallResult:
    return asyncio.run(tools.run("count", arguments, tool_call_id="t1"))


def test_arguments_are_checked_and_errors_are_answers(caplog: pytest.LogCaptureFixture) -> None:
    tool = LocalTool(name="count", description="Count.", arguments=Count, run=answer)
    tools = LocalTools([tool])
    assert run(tools, count=3) == CallResult("xxx")
    assert run(tools, count=13) == CallResult("13 brings bad luck", is_error=True)
    bug = run(tools, count=14)
    assert bug.text == "internal error count-t1 (RuntimeError): its traceback is on standard error"
    assert bug.is_error
    assert "secret" in caplog.text
    for wrong, field in (({}, "count"), ({"count": 0}, "count"), ({"count": 1, "more": 2}, "more")):
        refused = run(tools, **wrong)
        assert refused.is_error
        assert f"{field}: " in refused.text
    assert run(tools, count=0).text.endswith("count: it must be at least 1 (given: 0)")
    assert run(tools, count=1, cont=2).text.endswith("did you mean 'count'? (valid: count) (given: 2)")
    (schema,) = tools.schemas()
    assert schema.parameters == {
        "type": "object",
        "properties": {"count": {"type": "integer", "minimum": 1, "description": "How many."}},
        "required": ["count"],
        "additionalProperties": False,
    }


def test_names_are_unique_and_what_is_not_offered_works_all_the_same() -> None:
    async def nothing(arguments: NoArguments, missions: tuple[Mission, ...]) -> str:
        return "done"

    hidden = LocalTool(
        name="count", description="", arguments=NoArguments, run=nothing, offered=lambda: False, polling=True
    )
    tools = LocalTools([hidden])
    assert tools.schemas() == ()
    assert "count" in tools
    assert tools.polling() == {"count"}
    assert run(tools) == CallResult("done")
    with pytest.raises(ValueError, match="two tools are called 'count'"):
        LocalTools([hidden, hidden])
