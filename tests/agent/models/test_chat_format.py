"""Chunks that no server should send are read as well as they can be."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dimos_streams.agent.models.chat.format import chat_deltas
from dimos_streams.agent.models.model_options import Pricing
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


def test_cached_tokens_that_a_server_counts_apart_cost_what_they_cost() -> None:
    """A cost below nothing would give a mission that has a budget another one."""
    usage = usage_of(prompt_tokens=10, completion_tokens=1, prompt_tokens_details={"cached_tokens": 1000})
    assert usage is not None
    assert usage == TokenUsage(1010, 1, 1000)
    assert Pricing(input=3.0, cached=0.3).cost(usage) == pytest.approx((10 * 3.0 + 1000 * 0.3) / 1e6)


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
