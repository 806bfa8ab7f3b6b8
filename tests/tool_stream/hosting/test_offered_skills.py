"""A module that learns while it runs what it can do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from dimos_streams.errors import SkillError
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, SkillPolicy, SkillSpec, skill
from dimos_streams.testing import ModuleHarness
from dimos_streams.tool_stream.arguments.schema_parameters import SchemaParameters
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from tests.helpers import run_virtual, until

TIMES: dict[str, Any] = {"properties": {"times": {"type": "integer", "minimum": 1}}, "required": ["times"]}


class Learner(Module):
    """Has a skill by its class, and others that it is taught."""

    config: ModuleConfig
    taught: Mapping[str, SkillSpec] = {}

    def offered_skills(self) -> Mapping[str, SkillSpec]:
        return {**super().offered_skills(), **self.taught}

    @skill
    async def learn(self, name: str) -> None:
        """Learn to do something instead of what was learnt before."""
        self.taught = {name: described(name)}
        self.offer_anew()


def described(name: str, schema: Mapping[str, Any] = TIMES) -> SkillSpec:
    async def do(module: Learner, /, **given: Any) -> str:
        call: Call = given.pop("the call")
        await call.update(f"{module.name} begins to {name}")
        await asyncio.sleep(given["times"])
        return f"{name} {given}"

    return SkillSpec(name, do, SkillPolicy(), SchemaParameters(schema), f"Teach me to {name}", "the call")


def test_what_a_module_learns_is_called_and_what_it_forgets_goes_on_but_begins_no_more() -> None:
    async def scenario() -> None:
        async with ModuleHarness(Learner, name="learner") as harness:
            directory = harness.module.context.services.get(ModuleDirectory)
            assert directory is not None

            def offered() -> set[str]:
                return {info.name for _, info in directory.skills()}

            await (await harness.call("learn", name="hop")).result()
            await until(lambda: offered() == {"learn", "hop"})
            _, hop = directory.find("hop")
            assert (hop.description, hop.parameters["additionalProperties"]) == ("Teach me to hop", False)
            hopping = await harness.call("hop", times=5)
            assert await hopping.answer() == "learner begins to hop"
            wrong: list[tuple[dict[str, Any], str]] = [
                ({}, "times: is missing"),
                ({"times": 0}, "times: it must be at least 1 (given: 0)"),
                ({"times": 1, "_context": 1}, "_context: is not an argument of this skill (valid: times)"),
            ]
            for arguments, why in wrong:
                refused = await (await harness.call("hop", **arguments)).closed()
                assert (refused.outcome, why in refused.text) == (Outcome.REJECTED, True), refused.text

            await (await harness.call("learn", name="skip")).result()
            await until(lambda: offered() == {"learn", "skip"})
            assert await hopping.result() == "hop {'times': 5}"
            with pytest.raises(SkillError, match="no skill is called 'hop'"):
                await (await harness.call("hop", times=1)).result()

    run_virtual(scenario())


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string"}, "describes no object"),
        ({"properties": []}, "describes no object"),
        ({"properties": {"x": {"$ref": "https://example.org/x.json"}}}, "is not local"),
        ({"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"items": {"$ref": "#/$defs/x"}}}}, "contains"),
    ],
)
def test_a_schema_from_outside_that_can_not_be_used(schema: Mapping[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        described("hop", schema)


def test_references_are_written_out_and_what_it_says_of_other_arguments_does_not_count() -> None:
    point = {"type": "object", "properties": {"x": {"type": "number"}}}
    schema = {
        "properties": {"to": {"$ref": "#/$defs/Point"}},
        "$defs": {"Point": point},
        "additionalProperties": True,
    }
    parameters = SchemaParameters(schema)
    assert parameters.schema() == {
        "type": "object",
        "properties": {"to": point},
        "additionalProperties": False,
    }
    assert parameters.names == {"to"}
    assert parameters.validate("go", {"to": {"x": 1}}) == {"to": {"x": 1}}
    with pytest.raises(SkillError, match="skill 'go' cannot take these arguments: to"):
        parameters.validate("go", {"to": {"x": "far"}})
