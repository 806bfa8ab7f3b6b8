"""Chunks that no server should send are read as well as they can be."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dimos_streams.agent.models.chat.format import chat_deltas
from dimos_streams.agent.models.protocol import Finish, TextDelta, TokenUsage


def usage_of(**usage: Any) -> TokenUsage | None:
    return next((delta for delta in chat_deltas({"usage": usage}) if isinstance(delta, TokenUsage)), None)


@pytest.mark.feature("D4")
@pytest.mark.parametrize("bad", [True, False, -1, -0.5, math.nan, math.inf, 1e30, 10**30, "12", [1], {}])
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_usage_that_is_no_number_is_none(name: str, bad: Any) -> None:
    assert usage_of(**{"prompt_tokens": 5, "completion_tokens": 7, name: bad}) is None


def test_usage_is_counted_rounded_up() -> None:
    assert usage_of(prompt_tokens=100.0, completion_tokens=7.2) == TokenUsage(100, 8)
    assert usage_of(prompt_tokens=5) == TokenUsage(5, 0)
    assert usage_of(prompt_tokens=5, completion_tokens=1, prompt_cache_hit_tokens=2.0) == TokenUsage(5, 1, 2)
    assert usage_of(prompt_tokens=5, completion_tokens=1, prompt_cache_hit_tokens=True) == TokenUsage(5, 1, 0)
    assert usage_of(prompt_tokens=0, completion_tokens=0) is None


def test_of_several_choices_the_first_counts() -> None:
    second: dict[str, Any] = {"index": 1, "delta": {"content": "second"}, "finish_reason": "stop"}
    first: dict[str, Any] = {"index": 0, "delta": {"content": "first"}}
    assert list(chat_deltas({"choices": [second]})) == []
    assert list(chat_deltas({"choices": [second, first]})) == [TextDelta("first")]
    assert list(chat_deltas({"choices": [{"delta": {"content": "alone"}}]})) == [TextDelta("alone")]
    whole = [{"index": n, "message": {"content": str(n)}, "finish_reason": "stop"} for n in (2, 1)]
    assert list(chat_deltas({"choices": whole})) == [TextDelta("1"), Finish("stop")]


@pytest.mark.parametrize(
    ("name", "reason"), [("SAFETY", "content_filter"), ("model_length", "length"), ("MAX_TOKENS", "length")]
)
def test_a_reason_of_a_servers_own_has_its_common_name(name: str, reason: str) -> None:
    assert list(chat_deltas({"choices": [{"finish_reason": name}]})) == [Finish(reason)]
