"""Further attempts when a model fails in a way that may pass."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from dimos_streams.agent.models.protocol import (
    AskedAgain,
    Cut,
    Finish,
    Model,
    ModelDelta,
    ModelError,
    ModelRequest,
    TextDelta,
    ToolCallDelta,
)
from dimos_streams.client.backoff import Backoff
from dimos_streams.client.iterators import closing

_LONGEST_DELAY_S = 20.0


@dataclass(frozen=True, slots=True)
class Retry:
    """A failed attempt; the next one begins in ``delay_s`` seconds."""

    error: ModelError
    attempt: int
    """The number of the attempt that failed, from 1."""
    attempts: int
    delay_s: float


class RetryingModel:
    """Asks again, after growing delays with jitter or when the server says, while errors are retryable.

    It does so only until the answer begins: nothing of it is ever repeated, and ``AskedAgain`` comes behind what an
    attempt has thought and spent. A stream that breaks later ends with ``Cut``, unless the error is final: that is
    raised. An end without an answer and without a finish reason is an error like a lost connection.
    """

    def __init__(
        self,
        model: Model,
        rng: random.Random,
        *,
        attempts: int,
        initial_s: float,
        longest_wait_s: float,
        on_retry: Callable[[Retry], None] | None,
    ) -> None:
        """``longest_wait_s`` is the most that a server may ask for; if it asks for more, its error is final."""
        self._model = model
        self._random = rng
        self._attempts = attempts
        self._initial_s = initial_s
        self._longest_wait_s = longest_wait_s
        self._on_retry = on_retry

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """See ``Model``."""
        backoff = Backoff(self._random, initial_s=self._initial_s, maximum_s=_LONGEST_DELAY_S)
        for attempt in range(1, self._attempts + 1):
            begun = came = False
            try:
                async with closing(self._model.stream(request)) as stream:
                    async for delta in stream:
                        begun = begun or isinstance(delta, TextDelta | ToolCallDelta | Finish)
                        came = True
                        yield delta
                if begun:
                    return
                raise ModelError("the model's stream ended before the answer began", retryable=True)
            except ModelError as error:
                if not error.retryable:
                    raise
                if begun:
                    yield Cut(str(error))
                    return
                delay_s = self._delay(error, attempt, backoff)
                if self._on_retry is not None:
                    self._on_retry(Retry(error, attempt, self._attempts, delay_s))
            if came:
                yield AskedAgain()
            await asyncio.sleep(delay_s)

    async def close(self) -> None:
        """See ``Model``."""
        await self._model.close()

    def _delay(self, error: ModelError, attempt: int, backoff: Backoff) -> float:
        """Return the seconds until the next attempt. Raises ``ModelError`` if there is to be none."""
        if attempt == self._attempts:
            if attempt == 1:
                raise error
            raise ModelError(f"{error} (after {attempt} attempts)", status=error.status) from error
        delay_s = backoff.next()
        if error.retry_after_s is None:
            return delay_s
        if error.retry_after_s > self._longest_wait_s:
            why = f"it asks to wait {error.retry_after_s:g} s, more than {self._longest_wait_s:g} s"
            raise ModelError(f"{error} ({why})", status=error.status, retry_after_s=error.retry_after_s) from error
        return max(delay_s, error.retry_after_s)
