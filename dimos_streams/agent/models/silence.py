"""A bound on the silence of a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from dimos_streams.agent.models.protocol import Model, ModelDelta, ModelError, ModelRequest
from dimos_streams.client.iterators import closing


class SilenceModel:
    """Ends a model's stream with a ``ModelError`` when nothing has come for ``silence_s`` seconds.

    Such an error is not retryable: the next attempt would double the bound.
    """

    def __init__(self, model: Model, *, name: str, silence_s: float) -> None:
        self._model = model
        self._name = name
        self._silence_s = silence_s

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """See ``Model``."""
        async with closing(self._model.stream(request)) as stream:
            while True:
                try:
                    async with asyncio.timeout(self._silence_s) as bound:
                        delta = await anext(stream, None)
                except TimeoutError as error:
                    if not bound.expired():
                        raise
                    raise ModelError(f"model {self._name!r} has said nothing for {self._silence_s:g} s") from error
                if delta is None:
                    return
                yield delta

    async def close(self) -> None:
        """See ``Model``."""
        await self._model.close()
