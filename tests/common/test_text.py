"""Text from outside, made whole where it enters."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dimos_streams.common.json.reading import parse_command, parse_json, repaired, well_formed_json
from dimos_streams.common.json.writing import json_text, plain_data
from dimos_streams.common.readable.comparable_text import comparable, normalized
from dimos_streams.common.readable.surrogates import TextJoiner, well_formed, with_escaped_bytes

ANY_TEXT = st.text(st.characters() | st.sampled_from(["\ud83d", "\ude00", "\udcff", "\\", '"', "u", "😀"]))


@dataclass
class Found:
    sizes: dict[str, float]
    at: datetime


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("\ud83d\ude00!", "😀!"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00a", "\ufffda"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\udcff.yaml", "\ufffd.yaml"),
    ],
)
def test_halves_are_joined_or_replaced(text: str, expected: str) -> None:
    assert well_formed(text) == expected


@pytest.mark.slow
@given(st.lists(ANY_TEXT))
def test_pieces_make_the_same_text_as_the_whole(pieces: list[str]) -> None:
    joiner = TextJoiner()
    got = [*map(joiner.add, pieces), joiner.rest()]
    for piece in got:
        piece.encode()
    assert "".join(got) == well_formed("".join(pieces))


@pytest.mark.slow
@example({"\udcff.txt": 1})
@given(st.recursive(ANY_TEXT | st.integers(), lambda inner: st.dictionaries(ANY_TEXT, inner) | st.lists(inner)))
def test_json_of_any_text_is_read_as_its_repaired_form(value: Any) -> None:
    assert parse_json(json.dumps(value)) == json.loads(json.dumps(repaired(value)))
    assert json.loads(well_formed_json(json.dumps(value))) == parse_json(json.dumps(value))
    assert json_text(value) == json_text(repaired(value))


def test_the_name_of_a_file_that_is_no_utf8_may_be_a_name_in_json() -> None:
    found = [Found(sizes={"\udcff.txt": math.inf}, at=datetime(2026, 1, 2, tzinfo=UTC))]
    assert json_text(found) == '[{"sizes":{"\ufffd.txt":null},"at":"2026-01-02T00:00:00Z"}]'
    assert plain_data(found) == [{"sizes": {"\ufffd.txt": math.inf}, "at": "2026-01-02T00:00:00Z"}]


@pytest.mark.parametrize(
    "text",
    [
        *('{"a": NaN}', "[Infinity]", "[-1e999]", '{"a": [1e400]}', "[1.0e+309]", "", "\ud83d", "{}x", "[" * 9999),
        *(f'{{"a": [{10**400}]}}', str(-(10**309)), "1" * 5000),
    ],
    ids=str,
)
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"a": 1, "a": 1}', "a"),
        ('{"skill":"move","arguments":{"to":1,"to" :2},"caller":"me: I"}', "to"),
        ('[{"":{"":1}},{"":1,"":2}]', ""),
        (r'{"\u0061":":","a":{}}', "a"),
        ('{"é"\n:1,"é"\t:"x:y"}', "é"),
    ],
)
def test_in_a_command_names_are_there_once(text: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"several members of the name {name!r}"):
        parse_command(text)
    assert parse_json(text), "what is said is not lost for that"


@pytest.mark.slow
@given(st.recursive(ANY_TEXT, lambda inner: st.lists(st.tuples(st.sampled_from(["a", ": ", '":', "\\"]), inner))))
def test_only_texts_with_a_name_twice_in_an_object_are_refused_for_it(members: Any) -> None:
    doubles: list[str] = []

    def text_of(value: Any) -> str:
        if isinstance(value, str):
            return json.dumps(value)
        names = [name for name, _ in value]
        doubles.extend(names if len(set(names)) < len(names) else [])
        return "{" + " ,".join(f"{json.dumps(name)} : {text_of(inner)}" for name, inner in value) + "}"

    text = text_of(members)
    if doubles:
        with pytest.raises(ValueError, match="several members"):
            parse_command(text)
    else:
        assert parse_command(text) == json.loads(well_formed_json(text))


def test_bytes() -> None:
    assert parse_json(b'{"a": "\\ud83d", "b": "1e999", "c": 1e300}') == {"a": "\ufffd", "b": "1e999", "c": 1e300}
    assert parse_json(b'["\xed\xa0\xbd\xed\xb8\x80"]') == ["😀"]
    with pytest.raises(ValueError, match="utf-8"):
        parse_json(b'["\xff"]')


def test_data_that_json_does_not_have() -> None:
    assert repaired({"\ud83d": (math.nan, -math.inf, 1.5, True, None)}) == {"\ufffd": [None, None, 1.5, True, None]}
    assert repaired([10**400, -(10**309), 10**308]) == [None, None, 10**308]


def test_runs_of_marks_are_cut_as_each_is_sorted_in_the_square_of_its_length() -> None:
    """Nothing else runs meanwhile."""
    compared = comparable("a" + "\u0345\u0316\u0301" * 100)
    runs = re.findall(r"[\u0300-\u034e\u0350-\u036f]+", compared)
    assert max(map(len, runs)) <= 30
    assert sum(map(len, runs)) >= 299


@given(st.text())
def test_texts_as_people_write_them_are_in_their_normal_form(text: str) -> None:
    forms: tuple[Literal["NFC", "NFKC"], ...] = ("NFC", "NFKC")
    for form in forms:
        assert normalized(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize(
    ("text", "shown"), [("", ""), ("ü😀", ""), ("ü\udcff/\udcfe", "ü\\xff/\\xfe"), ("\udcc3", "\\xc3")]
)
def test_bytes_that_are_no_utf8_are_shown_escaped(text: str, shown: str) -> None:
    assert with_escaped_bytes(text) == shown
