"""Tool calls out of the pieces that servers send."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dimos_streams.agent.models.chat.format import chat_deltas
from dimos_streams.agent.models.protocol import ToolCallDelta
from dimos_streams.agent.models.tool_call_assembler import AssembledCall, ToolCallAssembler
from dimos_streams.common.secrets import has_secret
from tests.agent.models.golden_cases import CASES, put_together

OFFERED = ("gogo", "move", "move_arm", "stop", "stop_following", "observe")


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
    "under an index of their own, an empty piece first": (
        [d(0, "a", "move"), d(1), d(1, arguments='{"x": 1}')],
        [("a", "move", {"x": 1})],
    ),
    "under an index of their own, behind a whole call": (
        [d(0, "a", "move", '{"x": 1}'), d(1, arguments='{"x": 2}')],
        [("a", "move", {"x": 1}), ("new1", "", {"x": 2})],
    ),
    "under an index of their own, with another id": (
        [d(0, "a", "stop"), d(1, "b", "", '{"x": 2}')],
        [("a", "stop", {}), ("b", "", {"x": 2})],
    ),
    "by index, two names first": (
        [d(0, None, "move"), d(1, None, "stop"), d(0, arguments='{"x": 1}'), d(1, arguments="{}")],
        [("new1", "move", {"x": 1}), ("new2", "stop", {})],
    ),
    "an index before the name": (
        [d(0, "a"), d(1, arguments='{"x": 2}'), d(0, None, "stop", "{}")],
        [("a", "stop", {}), ("new1", "", {"x": 2})],
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
    "one id for all, whole calls by index 0": (
        [d(0, "a", "move", '{"x": 1}'), d(0, "a", "stop", "{}"), d(0, "a", "move", '{"x": 2}')],
        [("a", "move", {"x": 1}), ("new1", "stop", {}), ("new2", "move", {"x": 2})],
    ),
    "one id for all, whole calls without index": (
        [d(None, "a", "move", '{"x": 1}'), d(None, "a", "move", '{"x": 2}')],
        [("a", "move", {"x": 1}), ("new1", "move", {"x": 2})],
    ),
    "a whole call that comes twice": (
        [d(0, "a", "move", '{"x": 1}'), d(0, "a", "move", '{"x": 1}'), d(0, "a", "move", "")],
        [("a", "move", {"x": 1})],
    ),
    "empty ids": ([d(0, "", "move", "{}"), d(1, "", "stop", "{}")], [("new1", "move", {}), ("new2", "stop", {})]),
    "indexes out of order and with holes": (
        [d(3, "a", "move", "{}"), d(1, "b", "stop", "{}")],
        [("a", "move", {}), ("b", "stop", {})],
    ),
    "index 0 for every call, no ids, the same name": (
        [d(0, None, "move", '{"x": 1}'), d(0, None, "move", '{"x": 2}')],
        [("new1", "move", {"x": 1}), ("new2", "move", {"x": 2})],
    ),
    "a name that repeats itself, in pieces": (
        [d(0, "a", "go"), d(0, None, "go"), d(0, None, "", "{}")],
        [("a", "gogo", {})],
    ),
    "a new id in every piece": (
        [d(0, "a", "move"), d(0, "b", "", '{"x"'), d(0, "c", "", ": 1}"), d(0, "d", "move", '{"x": 2}')],
        [("a", "move", {"x": 1}), ("d", "move", {"x": 2})],
    ),
    "a call that was announced and never came": ([d(0, "a", "stop", "{}"), d(1, "b")], [("a", "stop", {})]),
    "a made-up id that another call has": (
        [d(0, "new1", "move", "{}"), d(1, None, "stop", "{}"), d(2, "new2", "stop", "{}")],
        [("new1", "move", {}), ("new2", "stop", {}), ("new3", "stop", {})],
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
@pytest.mark.parametrize("case", CASES)
def test_what_known_servers_send(case: str) -> None:
    chunks, answer = CASES[case]["chunks"], CASES[case]["answer"]
    assert put_together(itertools.chain.from_iterable(map(chat_deltas, chunks))) == answer


def test_a_signature_goes_with_its_call() -> None:
    deltas = [delta for chunk in CASES["gemini"]["chunks"] for delta in chat_deltas(chunk)]
    assembler = ToolCallAssembler()
    for delta in deltas:
        if isinstance(delta, ToolCallDelta):
            assembler.add(delta)
    signed, plain = assembler.finish(complete=True, new_id=str)
    assert signed.call.extra == {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    assert plain.call.extra is None


def test_names_are_reported_once_when_arguments_begin() -> None:
    assembler = ToolCallAssembler(OFFERED)
    names_begun: list[list[str]] = []
    for piece in (d(0, "a", "mo"), d(0, None, "ve"), d(1, "b", "stop"), d(1, None, "", "{}"), d(0, None, "", "{}")):
        assembler.add(ToolCallDelta(**piece))
        names_begun.append(assembler.newly_begun())
    assembler.add(ToolCallDelta(index=2, name="observe", arguments="{}"))
    assert [*names_begun, assembler.newly_begun()] == [[], [], [], [], ["move", "stop"], ["observe"]]


@pytest.mark.feature("B1")
@pytest.mark.parametrize(
    "pieces",
    [
        [d(0, "a", "stop", "x")] * 50_000,
        [d(0, None, "x" * (number % 2 + 1)) for number in range(200_000)],
        [d(number % 999, f"{number % 999}", "stop", "{}") for number in range(20_000)],
        [d(number % 999, None, "", "{") for number in range(20_000)],
    ],
    ids=["arguments", "a name", "whole calls again", "arguments of many calls"],
)
def test_many_small_pieces_take_no_longer_each_for_what_came_before(pieces: list[dict[str, Any]]) -> None:
    assembler = ToolCallAssembler(OFFERED)
    began = time.process_time()
    for piece in pieces:
        assembler.add(ToolCallDelta(**piece))
        assembler.newly_begun()
    assert time.process_time() - began < 2.0


@pytest.mark.feature("B2")
def test_at_a_limit_the_newest_call_must_show_that_it_is_whole() -> None:
    def damages(*pieces: dict[str, Any]) -> list[str | None]:
        assembler = ToolCallAssembler(OFFERED)
        for piece in pieces:
            assembler.add(ToolCallDelta(**piece))
        return [call.damage for call in assembler.finish(complete=True, limited=True, new_id=str)]

    assert damages(d(0, "a", "stop"), d(1, "b", "stop")) == [None, "truncated"]
    assert damages(d(0, "a", "move", '{"x": 1}')) == [None]


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
).filter(lambda arguments: not has_secret(json.dumps(arguments)))
"""Any arguments without what is redacted: ``://0@`` would be a URL with a user."""


@pytest.mark.feature("B1")
def test_half_a_character_in_pieces_of_a_call() -> None:
    pieces = [
        d(0, "a\ud83d", "mo\ud83d"),
        d(0, None, "", '{"x": "\ud83d'),
        d(0, None, "", "\ude00 \\ud83"),
        d(0, None, "", 'd"}'),
    ]
    (call,) = assemble(*pieces)
    assert (call.call.id, call.call.name, call.arguments) == ("a\ufffd", "mo\ufffd", {"x": "😀 \ufffd"})
    assert json.loads(call.call.arguments) == call.arguments


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
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
        '{"x": 1e999}',
        '{"x": 1, "x": 90}',
        '{"x": 1,}',
        "move(1)",
        '{"x":' + "[" * 9999,
    ],
)
def test_what_no_continuation_mends_is_malformed(text: str) -> None:
    (call,) = assemble(d(0, "a", "move", text))
    assert (call.damage, call.arguments) == ("malformed", {})


def test_the_model_is_shown_the_first_200_characters() -> None:
    text = '{"a": "' + "x" * 500
    (call,) = assemble(d(0, "a", "move", text))
    assert call.problem == (
        "'move' was not run: its arguments are truncated (EOF while parsing a string at line 1 column 507). "
        f"Send the whole call again. Received (200 of 507 characters): {text[:200]}"
    )


STYLES = {
    "by index": lambda index, piece: d(index, f"id{index}" if piece == 0 else None),
    "by index and id": lambda index, piece: d(index, f"id{index}"),
    "by id": lambda index, piece: d(None, f"id{index}"),
    "by index alone": lambda index, piece: d(index),
    "index 0, new ids": lambda index, piece: d(0, f"id{index}" if piece == 0 else ""),
    "index 0, another id in each piece": lambda index, piece: d(0, f"id{index}.{piece}"),
    "late ids": lambda index, piece: d(index, f"id{index}" if piece else None),
    "one id for all": lambda index, piece: d(index, "id"),
    "neither": lambda index, piece: d(),
}


def split(text: str, random: Any) -> list[str]:
    cuts = sorted(random.choices(range(len(text) + 1), k=random.randrange(4)))
    return [text[start:end] for start, end in itertools.pairwise([0, *cuts, len(text)])]


@pytest.mark.slow
@pytest.mark.feature("B1")
@pytest.mark.parametrize("style", STYLES)
@settings(max_examples=30, deadline=None)
@given(
    calls=st.lists(st.tuples(st.sampled_from(OFFERED), ARGUMENTS), max_size=4),
    random=st.randoms(use_true_random=False),
)
def test_any_way_of_splitting_gives_the_same_calls(
    style: str, calls: list[tuple[str, dict[str, Any]]], random: Any
) -> None:
    stream = []
    for index, (name, arguments) in enumerate(calls):
        # Only the first piece of a name may share its delta with the id that begins a call.
        names = [name] if style.startswith("index 0") else [piece for piece in split(name, random) if piece]
        pieces = [(piece, "") for piece in names] + [("", piece) for piece in split(json.dumps(arguments), random)]
        for number, (name_piece, arguments_piece) in enumerate(pieces):
            stream.append(STYLES[style](index, number) | {"name": name_piece, "arguments": arguments_piece})
    expected = [(name, json.loads(json.dumps(arguments))) for name, arguments in calls]
    got = assemble(*stream)
    assert [(call.call.name, call.arguments) for call in got] == expected
    assert all(call.damage is None for call in got)
    assert len({call.call.id for call in got}) == len(got)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
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


@pytest.mark.slow
@pytest.mark.feature("B1")
@pytest.mark.parametrize("name", ["", "move"])
def test_arguments_take_time_in_proportion_to_their_length(name: str) -> None:
    def seconds(length: int) -> float:
        text = json.dumps({"a": "}" * length})
        pieces = [d(0, "a", "move")] + [d(0, None, name, text[at : at + 20]) for at in range(0, len(text), 20)]
        begun = time.process_time()
        (call,) = assemble(*pieces)
        assert len(call.arguments["a"]) == length
        return time.process_time() - begun

    small = min(seconds(50_000) for _ in range(3))
    assert seconds(1_000_000) < 60 * small
