"""Retries and the bound on silence, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.agent.loop.turns.model_response import Answering, ModelAnswer
from dimos_streams.agent.missions.limits import LoopLimits
from dimos_streams.agent.models import guarded
from dimos_streams.agent.models.failures import may_pass, retry_after_s
from dimos_streams.agent.models.model_options import ModelOptions, Pricing
from dimos_streams.agent.models.protocol import (
    AskedAgain,
    Cut,
    Finish,
    Model,
    ModelDelta,
    ModelError,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TokenUsage,
    UserMessage,
)
from dimos_streams.agent.models.retrying import Retry
from dimos_streams.agent.models.scripted import Script, ScriptedModel
from dimos_streams.client.iterators import closing
from tests.helpers import run_virtual

REQUEST = ModelRequest((UserMessage("hello"),))


def scripted(*turns: dict[str, Any]) -> ScriptedModel:
    return ScriptedModel(Script.model_validate({"turns": turns}))


def failing(**fields: Any) -> dict[str, Any]:
    return {"error": {"text": "overloaded", "retryable": True, **fields}}


async def heard(model: Model) -> list[ModelDelta]:
    async with closing(model.stream(REQUEST)) as stream:
        return [delta async for delta in stream]


def ask(model: Model, *, seed: int = 1, **options: Any) -> tuple[list[ModelDelta] | ModelError, list[Retry], float]:
    """The result of one request, the retries, and how long it took."""
    retries: list[Retry] = []

    async def main() -> tuple[list[ModelDelta] | ModelError, float]:
        begun = clock.monotonic()
        guard = guarded(
            model, name="m", options=ModelOptions(**options), rng=random.Random(seed), on_retry=retries.append
        )
        try:
            got: list[ModelDelta] | ModelError = await heard(guard)
        except ModelError as error:
            got = error
        await guard.close()
        return got, clock.monotonic() - begun

    got, seconds = run_virtual(main())
    return got, retries, seconds


HELLO = [TextDelta("hello"), Finish("stop")]


@pytest.mark.feature("D7")
def test_three_failures_and_then_an_answer() -> None:
    got, retries, seconds = ask(scripted(failing(), failing(status=500), {"finish": None}, {"text": "hello"}))
    assert got == HELLO
    assert [retry.attempt for retry in retries] == [1, 2, 3]
    for retry, base in zip(retries, (0.5, 1.0, 2.0), strict=True):
        assert base <= retry.delay_s <= 1.5 * base
    assert seconds == pytest.approx(sum(retry.delay_s for retry in retries))
    assert "ended before the answer began" in str(retries[2].error)


def test_jitter_comes_from_the_seed() -> None:
    def delays(seed: int) -> list[float]:
        return [retry.delay_s for retry in ask(scripted(failing(), failing(), {"text": "hello"}), seed=seed)[1]]

    assert delays(1) == delays(1)
    assert delays(1) != delays(2)


@pytest.mark.feature("D7")
def test_a_permanent_failure_ends_at_once_with_its_reason() -> None:
    got, retries, seconds = ask(scripted({"error": {"text": "HTTP 401: no such key", "status": 401}}))
    assert isinstance(got, ModelError)
    assert "HTTP 401: no such key" in str(got)
    assert (got.status, retries, seconds) == (401, [], 0)


def test_attempts_end() -> None:
    got, retries, _ = ask(scripted(*[failing(status=503)] * 9), attempts=3)
    assert isinstance(got, ModelError)
    assert str(got) == "scripted: overloaded (after 3 attempts)"
    assert (got.status, got.retryable, len(retries)) == (503, False, 2)


@pytest.mark.feature("D7")
def test_the_server_says_when() -> None:
    got, retries, seconds = ask(scripted(failing(retry_after_s=7), {"text": "hello"}))
    assert got == HELLO
    assert seconds == retries[0].delay_s == 7
    got, retries, seconds = ask(scripted(failing(retry_after_s=3600), {"text": "hello"}))
    assert isinstance(got, ModelError)
    assert "asks to wait 3600 s, more than 60 s" in str(got)
    assert (retries, seconds) == ([], 0)


@pytest.mark.feature("D7")
def test_nothing_that_was_reported_is_reported_again() -> None:
    got, retries, _ = ask(scripted({"text": "hel", **failing()}, {"text": "hello"}))
    assert got == [TextDelta("hel"), Cut("scripted: overloaded")]
    assert retries == []
    # A model's thoughts are no answer.
    got, retries, _ = ask(scripted({"reasoning": "hm", **failing()}, {"text": "hello"}))
    assert got == [ReasoningDelta("hm"), AskedAgain(), *HELLO]
    assert len(retries) == 1
    assert isinstance(ask(scripted({"text": "hel", "error": "refused"}))[0], ModelError)


@pytest.mark.feature("D8")
@pytest.mark.parametrize(
    ("first", "last", "spent"),
    [
        ({"usage": {"input_tokens": 10, "output_tokens": 5}}, {"input_tokens": 10}, TokenUsage(20, 5)),
        ({}, {"input_tokens": 10, "output_tokens": 1}, TokenUsage(12, 3, estimated=True)),
        ({"usage": {"input_tokens": 10}}, None, TokenUsage(12, 2, estimated=True)),
        ({}, None, TokenUsage(4, 4, estimated=True)),
    ],
)
@pytest.mark.parametrize("answers", [True, False])
def test_what_an_attempt_has_spent_that_broke_off_while_the_model_thought_counts(
    first: dict[str, Any], last: dict[str, int] | None, spent: TokenUsage, answers: bool
) -> None:
    """Servers bill it, and a mission's budget has to end it."""
    ends = {"text": "hello"} if answers else {"reasoning": "hello", "error": "refused"}
    model = scripted({"reasoning": "1234567", **failing(), **first}, {**ends, "usage": last})
    answering = Answering(lambda *_, **__: None, (), itertools.count(1), LoopLimits(reasoning_characters=10))

    async def main() -> ModelAnswer | None:
        options = ModelOptions(first_wait_s=0.0)
        guard = guarded(model, name="m", options=options, rng=random.Random(1))
        with contextlib.suppress(ModelError):
            return await answering.receive(guard, REQUEST)
        return None

    answer = run_virtual(main())
    assert answering.usage == spent
    if answers:
        assert answer is not None
        assert (answer.text, answer.thoughts.text) == ("hello", ""), "what it thought before led to no answer"


@pytest.mark.parametrize("turn", [{"delay_s": 1e6}, {"text": ["a", "b"], "pause_s": 1e6}])
def test_a_silent_model_is_an_error_at_the_bound(turn: dict[str, Any]) -> None:
    got, retries, seconds = ask(scripted(turn, {"text": "hello"}), silence_s=20)
    assert isinstance(got, ModelError)
    assert str(got) == "model 'm' has said nothing for 20 s"
    assert seconds == pytest.approx(20, abs=0.5)
    assert retries == []


def test_a_slow_model_that_speaks_is_none() -> None:
    got, _, seconds = ask(scripted({"text": ["a"] * 9, "pause_s": 19, "delay_s": 19}), silence_s=20)
    assert got == [TextDelta("a")] * 9 + [Finish("stop")]
    assert seconds == 190


class Watched:
    """A model that never answers, and knows whether its stream was closed."""

    def __init__(self) -> None:
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        try:
            yield TextDelta("a")
            await asyncio.get_running_loop().create_future()
        finally:
            self.closed += 1

    async def close(self) -> None:
        """Nothing to close."""


@pytest.mark.virtual_time
async def test_the_stream_is_closed_whatever_ends_it() -> None:
    model = Watched()

    guard = guarded(model, name="m", options=ModelOptions(silence_s=5), rng=random.Random(1))
    with pytest.raises(ModelError):
        await heard(guard)
    assert model.closed == 1
    async with closing(guard.stream(REQUEST)) as stream:
        async for _ in stream:
            break
    assert model.closed == 2
    task = asyncio.ensure_future(heard(guard))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.closed == 3


@pytest.mark.parametrize(
    ("status", "code", "passes"),
    [
        *((status, None, True) for status in (408, 409, 425, 429, 500, 502, 503, 529)),
        *((status, None, False) for status in (400, 401, 403, 404, 422)),
        (429, "insufficient_quota", False),
    ],
)
def test_what_may_pass(status: int, code: str | None, passes: bool) -> None:
    assert may_pass(status, code) == passes


@pytest.mark.feature("D7")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-1"}, 0),
        ({"retry-after": "Sun, 13 Sep 2020 12:27:40 GMT"}, 60),
        ({"retry-after": "Sun, 13 Sep 2020 12:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "1 Jan 2020 00:00:00 +99999999999999999999"}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    async def main() -> float | None:
        return retry_after_s(headers)

    assert run_virtual(main()) == (None if seconds is None else pytest.approx(seconds, abs=0.01))


def test_cost() -> None:
    pricing = Pricing(input=2.0, output=10.0, cached=0.5)
    usages: Sequence[TokenUsage] = [TokenUsage(1_000_000, 100_000, 400_000), TokenUsage(0, 100_000)]
    assert pricing.cost(usages[0]) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 1)
    assert pricing.cost(usages[0] + usages[1]) == pytest.approx(sum(map(pricing.cost, usages)))
    assert Pricing(input=2.0).cost(TokenUsage(1_000_000, 5, 1_000_000)) == 2.0
