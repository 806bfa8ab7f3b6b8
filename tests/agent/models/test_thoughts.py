"""Thoughts that come in pieces are put together as their server signed them, without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.agent.models.thoughts import GatheredThoughts, Thoughts
from dimos_streams.common.secrets import REDACTED, know


def gathered(*pieces: dict[str, Any]) -> Thoughts:
    thoughts = GatheredThoughts()
    for piece in pieces:
        thoughts.add_details("thinking_blocks", [{"type": "thinking", **piece}])
    return thoughts.kept


@pytest.mark.feature("D7")
def test_what_comes_behind_a_signature_is_a_block_of_its_own() -> None:
    signed, another = {"thinking": "", "signature": "c2ln"}, {"signature": "bmV4dA=="}
    kept = gathered({"thinking": "So", "signature": ""}, signed, {"thinking": "or"}, another)
    first, second = kept.details["thinking_blocks"]
    assert (first["thinking"], first["signature"]) == ("So", "c2ln")
    assert (second["thinking"], second["signature"]) == ("or", "bmV4dA==")
    signed_each = [{"thinking": letter, "signature": "c2ln"} for letter in "So"]
    assert [block["thinking"] for block in gathered(*signed_each).details["thinking_blocks"]] == ["So"]


@pytest.mark.feature("H4")
def test_a_secret_that_came_in_two_pieces_is_not_kept() -> None:
    know("sk-0123456789abcdef")
    (block,) = gathered({"thinking": "It is sk-01234567"}, {"thinking": "89abcdef."}).details["thinking_blocks"]
    assert block["thinking"] == f"It is {REDACTED}."


@pytest.mark.feature("D7")
def test_thoughts_are_bounded() -> None:
    thoughts = GatheredThoughts()
    for letter in "abc":
        thoughts.add(letter * 6000)
    assert thoughts.kept.text == "b" * 4000 + "c" * 6000
    for size in (90_000, 20_000, 10):
        thoughts.add_details("reasoning_details", [{"type": "reasoning.encrypted", "data": "x" * size}])
    assert thoughts.kept.details == {}, "half of them would be refused"
