"""Tool calls out of the pieces that servers send."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.agent.assembly import AssembledCall, ToolCallAssembler
from dimos_streams.agent.models.base import ToolCallDelta

OFFERED = ("move", "move_arm", "stop", "stop_following", "observe")


def assemble(
    *pieces: dict[str, Any], complete: bool = True, offered: tuple[str, ...] = OFFERED
) -> list[AssembledCall]:
    assembler = ToolCallAssembler(offered)
    for piece in pieces:
        assembler.add(ToolCallDelta(**piece))
    numbers = itertools.count(1)
    return list(assembler.finish(complete=complete, new_id=lambda: f"new{next(numbers)}"))


def d(index: int | None = None, id: str | None = None, name: str = "", arguments: str = "") -> dict[str, Any]:
    return {"index": index, "id": id, "name": name, "arguments": arguments}


GOLDEN: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str, dict[str, Any]]]]] = {
    "by index, the id first": (
        [d(0, "a", "move"), d(0, None, "", '{"x"'), d(0, None, "", ": 1}")],
        [("a", "move", {"x": 1})],
    ),
    "the id in every piece": (
        [d(0, "a", "move", '{"x"'), d(0, "a", "", ": 1}")],
        [("a", "move", {"x": 1})],
    ),
    "by id only": (
        [d(None, "a", "move", '{"x"'), d(None, "b", "stop", "{}"), d(None, "a", "", ": 1}")],
        [("a", "move", {"x": 1}), ("b", "stop", {})],
    ),
    "interleaved by index": (
        [d(0, "a", "move"), d(1, "b", "stop"), d(0, None, "", '{"x": 1}'), d(1, None, "", "{}")],
        [("a", "move", {"x": 1}), ("b", "stop", {})],
    ),
    "a late id by index": ([d(0, None, "move", "{"), d(0, "a", "", "}")], [("a", "move", {})]),
    "a late id without index": ([d(None, None, "move", "{"), d(None, "a", "", "}")], [("a", "move", {})]),
    "neither index nor id": ([d(name="move", arguments='{"x"'), d(arguments=": 1}")], [("new1", "move", {"x": 1})]),
    "neither, two whole calls": (
        [d(name="move", arguments='{"x": 1}'), d(name="move", arguments='{"x": 2}')],
        [("new1", "move", {"x": 1}), ("new2", "move", {"x": 2})],
    ),
    "neither, two calls without arguments": (
        [d(name="stop"), d(name="observe")],
        [("new1", "stop", {}), ("new2", "observe", {})],
    ),
    "the name in pieces": (
        [d(0, "a", "stop"), d(0, None, "_foll"), d(0, None, "owing"), d(0, None, "", "{}")],
        [("a", "stop_following", {})],
    ),
    "the name in every piece": (
        [d(0, "a", "move", ""), d(0, "a", "move", '{"x"'), d(0, "a", "move", ": 1}")],
        [("a", "move", {"x": 1})],
    ),
    "index 0 for every call, new ids": (
        [d(0, "a", "move", '{"x": 1}'), d(0, "b", "move", '{"x": 2}'), d(0, "c", "stop")],
        [("a", "move", {"x": 1}), ("b", "move", {"x": 2}), ("c", "stop", {})],
    ),
    "index 0 for every call, interleaved by id": (
        [d(0, "a", "move", '{"x"'), d(0, "b", "stop", "{"), d(0, "a", "", ": 1}"), d(0, "b", "", "}")],
        [("a", "move", {"x": 1}), ("b", "stop", {})],
    ),
    "index 0 for every call, no ids": (
        [d(0, None, "move", '{"x": 1}'), d(0, None, "stop", "{}")],
        [("new1", "move", {"x": 1}), ("new2", "stop", {})],
    ),
    "one id for two indexes": (
        [d(0, "a", "move", '{"x": 1}'), d(1, "a", "stop", "{}")],
        [("a", "move", {"x": 1}), ("new1", "stop", {})],
    ),
    "empty ids": ([d(0, "", "move", "{}"), d(1, "", "stop", "{}")], [("new1", "move", {}), ("new2", "stop", {})]),
    "indexes out of order and with holes": (
        [d(3, "a", "move", "{}"), d(1, "b", "stop", "{}")],
        [("a", "move", {}), ("b", "stop", {})],
    ),
    "null for no arguments": ([d(0, "a", "stop", "null")], [("a", "stop", {})]),
}


@pytest.mark.feature("B1")
@pytest.mark.parametrize("case", GOLDEN)
def test_golden(case: str) -> None:
    pieces, expected = GOLDEN[case]
    calls = assemble(*pieces)
    assert [(c.call.id, c.call.name, c.arguments) for c in calls] == expected
    assert all(c.damage is None for c in calls)


@pytest.mark.feature("B1")
def test_a_cut_stream_loses_nothing_and_is_marked() -> None:
    calls = assemble(d(0, "a", "move", '{"x": 1}'), d(1, "b", "stop"), complete=False)
    assert [(c.call.id, c.call.name, c.call.arguments, c.damage, c.arguments) for c in calls] == [
        ("a", "move", '{"x": 1}', "truncated", {}),
        ("b", "stop", "", "truncated", {}),
    ]


ARGUMENTS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    ),
    min_size=1,
    max_size=3,
)


@given(ARGUMENTS, st.data())
def test_every_cut_of_arguments_is_truncated_and_not_malformed(
    arguments: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(arguments)
    (whole,) = assemble(d(0, "a", "move", text))
    assert whole.arguments == json.loads(text)
    (cut,) = assemble(d(0, "a", "move", text[: data.draw(st.integers(1, len(text) - 1))]))
    assert (cut.damage, cut.arguments) == ("truncated", {})


@pytest.mark.parametrize(
    "text",
    [
        "{x: 1}",
        '{"x": 1}}',
        "[1]",
        "7",
        '"{}"',
        "{'x': 1}",
        '{"x": NaN}',
        '{"x": 1,}',
        "move(1)",
        '{"x":' + "[" * 9999,
    ],
)
def test_what_no_continuation_mends_is_malformed(text: str) -> None:
    (call,) = assemble(d(0, "a", "move", text))
    assert (call.damage, call.arguments) == ("malformed", {})


def test_the_model_is_told_with_the_first_200_characters() -> None:
    text = '{"a": "' + "x" * 500
    (call,) = assemble(d(0, "a", "move", text))
    assert call.problem == (
        "'move' was not run: its arguments are truncated (EOF while parsing a string at line 1 column 507). "
        f"Send the whole call again. Received (200 of 507 characters): {text[:200]}"
    )


@given(st.lists(st.tuples(st.sampled_from(OFFERED), ARGUMENTS), max_size=4), st.randoms(use_true_random=False))
def test_any_interleaving_by_index_gives_the_same_calls(calls: list[tuple[str, dict[str, Any]]], random: Any) -> None:
    queues = []
    for index, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        cut = random.randrange(len(text))
        pieces = [d(index, f"id{index}", name), d(index, None, "", text[:cut]), d(index, None, "", text[cut:])]
        queues.append(pieces)
    stream = [queue.pop(0) for queue in queues]
    while any(queues):
        stream.append(random.choice([queue for queue in queues if queue]).pop(0))
    assert [(c.call.name, c.arguments) for c in assemble(*stream)] == [
        (n, json.loads(json.dumps(a))) for n, a in calls
    ]


def test_a_megabyte_of_arguments_in_small_pieces() -> None:
    text = json.dumps({"a": "x" * 1_000_000})
    pieces = [d(0, "a", "move")] + [d(0, None, "", text[at : at + 20]) for at in range(0, len(text), 20)]
    (call,) = assemble(*pieces)
    assert len(call.arguments["a"]) == 1_000_000
