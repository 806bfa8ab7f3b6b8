"""Schemas as models and MCP clients get them: without references, and bounded."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field

from dimos_streams.agent.policies.gates.chain import build_chain
from dimos_streams.agent.policies.gates.gate_state import GateState
from dimos_streams.agent.policies.gates.settings import GateSettings
from dimos_streams.blueprint import blueprint, module
from dimos_streams.blueprint.check import check
from dimos_streams.bridge.mcp.tools import listed
from dimos_streams.common.schemas.references import FOREIGN_PARTS, inlined
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import SkillInfo, skill, skills_of
from dimos_streams.skill.spec import ModelParameters
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.look_out_for import LookOut
from dimos_streams.skills.observe import Observe
from dimos_streams.skills.patrol import Patrol
from dimos_streams.tool_stream.arguments.schemas import check_schema
from tests.agent.policies.brain import Brain
from tests.agent.policies.gate_inputs import offered, step
from tests.agent.policies.robot_stage import robot_stage

pytestmark = pytest.mark.feature("K5")


class NoConfig(ModuleConfig):
    """Nothing."""


class Gait(enum.Enum):
    """How to walk."""

    SLOW = "slow"
    FAST = "fast"


class Point(BaseModel):
    """A point."""

    x: float
    y: float = 0.0


@dataclass(frozen=True)
class Way:
    """Points, one after the other."""

    points: list[Point]
    gait: Gait = Gait.SLOW


class Walk(BaseModel):
    """On foot."""

    kind: Literal["walk"]
    way: Way


class Jump(BaseModel):
    """In the air."""

    kind: Literal["jump"]
    to: Point


class Legs(Module):
    """Its skills take types within types."""

    config: NoConfig

    @skill(tags=("safe",))
    async def walk(self, way: Way, home: Point | None = None) -> str:
        """Walk.

        Args:
            way: Where.
        """
        return ""

    @skill
    async def act(self, acts: list[Annotated[Walk | Jump, Field(discriminator="kind")]]) -> str:
        """Do something."""
        return ""


class Tree(BaseModel):
    """Trees in trees."""

    branches: list[Tree] = []


class Gardener(Module):
    """Its skill takes what contains itself."""

    config: NoConfig

    @skill
    async def prune(self, tree: Tree) -> str:
        """Prune a tree."""
        return ""


def levels(depth: int) -> type[BaseModel]:
    """A type that has the next one twice, and so on."""
    inner: Any = int
    for number in range(depth):
        inner = type(f"Level{number}", (BaseModel,), {"__annotations__": {"a": inner, "b": inner}})
    return inner  # type: ignore[no-any-return]


Deep = levels(16)


class Digger(Module):
    """Its skill takes what has 65,000 parts."""

    config: NoConfig

    @skill
    async def dig(self, hole: Deep) -> str:  # type: ignore[valid-type]
        """Dig."""
        return ""


def references(schema: Any) -> Iterator[str]:
    """All that refers to something, wherever it is."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in ("$ref", "$defs", "definitions", "discriminator"):
                yield key
            yield from references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from references(item)


def test_types_stand_where_they_are_used_and_keep_their_names() -> None:
    specs = {name: spec.info().parameters for name, spec in skills_of(Legs).items()}
    assert list(references(specs)) == []
    assert "#/" not in json.dumps(specs)
    walk = specs["walk"]["properties"]
    assert (walk["way"]["title"], walk["way"]["description"]) == ("Way", "Where.")
    assert walk["way"]["properties"]["gait"] == {
        "title": "Gait",
        "description": "How to walk.",
        "type": "string",
        "enum": ["slow", "fast"],
        "default": "slow",
    }
    assert [option.get("title") for option in walk["home"]["anyOf"]] == ["Point", None]
    assert [option["title"] for option in specs["act"]["properties"]["acts"]["items"]["oneOf"]] == ["Walk", "Jump"]


def test_what_fits_with_references_fits_without() -> None:
    for spec in skills_of(Legs).values():
        assert isinstance(spec.parameters, ModelParameters)
        before = Draft202012Validator(spec.parameters.model.model_json_schema())
        after = Draft202012Validator(spec.info().parameters)
        point = {"x": 1}
        way: dict[str, Any] = {"points": [point], "gait": "fast"}
        for arguments in (
            {"way": way},
            {"way": {**way, "gait": "gone"}},
            {"way": {"points": [{"y": 2}]}, "home": point},
            {"way": way, "home": 3},
            {"acts": [{"kind": "walk", "way": way}, {"kind": "jump", "to": point}]},
            {"acts": [{"kind": "jump", "way": way}]},
            {},
        ):
            assert before.is_valid(arguments) == after.is_valid(arguments)


def test_a_type_that_contains_itself_is_refused_where_it_is_declared() -> None:
    with pytest.raises(TypeError, match=r"Gardener\.prune: .*type 'Tree' contains itself"):
        skills_of(Gardener)
    (problem,) = check(blueprint("garden", module(Gardener)))
    assert "is not declared as it should be: Gardener.prune" in problem.text


def test_types_that_grow_with_every_level_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Digger\.dig: .*more than 20000 parts"):
        skills_of(Digger)


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ({}, {"type": "number", "title": "P"}),
        ({"description": "d", "default": 1}, {"type": "number", "title": "P", "description": "d", "default": 1}),
        (
            {"minimum": 3, "description": "d"},
            {"allOf": [{"type": "number", "title": "P"}, {"minimum": 3}], "description": "d"},
        ),
        ({"$defs": {}, "discriminator": {"mapping": {"a": "#/x"}}}, {"type": "number", "title": "P"}),
    ],
)
def test_what_is_said_beside_a_reference_holds(beside: dict[str, Any], expected: dict[str, Any]) -> None:
    root = {"properties": {"p": {"$ref": "#/$defs/P", **beside}}, "$defs": {"P": {"type": "number", "title": "P"}}}
    assert inlined(root) == {"properties": {"p": expected}}


def test_names_and_values_are_no_references() -> None:
    plain = {
        "properties": {
            "$ref": {"type": "string"},
            "$defs": {"const": {"$ref": "#/nowhere"}},
            "x": {"enum": [{"$defs": 1}], "default": {"$ref": "#/nowhere"}},
        }
    }
    assert inlined(plain) == plain


def test_a_schema_from_outside_is_written_out_within_a_bound() -> None:
    levels = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(8)}
    many = {"type": "object", "$ref": "#/$defs/l0", "$defs": {**levels, "l8": {"type": "object"}}}
    few = {"properties": {"a": {"$ref": "#/$defs/P"}, "b": {"$ref": "#/$defs/P"}}, "$defs": {"P": {"type": "null"}}}
    check_schema(many)
    with pytest.raises(ValueError, match=f"more than {FOREIGN_PARTS} parts"):
        inlined(many, FOREIGN_PARTS)
    infos = [
        SkillInfo(name="many", description="", parameters=many),
        SkillInfo(name="few", description="", parameters=few),
    ]
    tools = {tool["name"]: tool for tool in listed(infos)}
    assert "many" not in tools
    assert tools["few"]["inputSchema"] == {
        "type": "object",
        "properties": {"a": {"type": "null"}, "b": {"type": "null"}},
    }
    settings = GateSettings()
    chain = build_chain(settings, GateState(settings, lambda *args, **data: None, step))
    assert chain.tool(offered("many", parameters=many)) is None
    tool = chain.tool(offered("few", parameters=few))
    assert tool is not None
    assert list(references(tool.parameters)) == []


def test_no_stock_skill_and_no_tool_of_the_bridge_has_references() -> None:
    classes = (Drive, FollowPerson, LookOut, Observe, Patrol)
    infos = [spec.info() for cls in classes for spec in skills_of(cls).values()]
    assert list(references([info.parameters for info in infos])) == []
    assert list(references(listed(infos))) == []


@pytest.mark.virtual_time
async def test_no_tool_of_an_agent_has_references() -> None:
    brain = Brain("done")
    agents = {"helper": {"description": "helps", "prompt": "helper"}}
    async with robot_stage(brain, agents=agents, call_tools_always=True, plan={"motions": 2}) as (made, _):
        await (await made.say("go")).result()
        (request,) = brain.requests
        assert {"create_plan", "delegate", "elicit"} <= {tool.name for tool in request.tools}
        assert list(references([dict(tool.parameters) for tool in request.tools])) == []


def test_a_default_that_json_does_not_have_is_left_out_of_the_schema() -> None:
    class Waits(Module):
        """Waits."""

        config: NoConfig

        @skill
        async def wait(self, until: Any = float, times: int = 1) -> None:
            """Wait."""

    schema = skills_of(Waits)["wait"].info().parameters
    assert schema["properties"] == {"until": {}, "times": {"type": "integer", "default": 1}}
    assert "required" not in schema
