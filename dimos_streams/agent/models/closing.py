"""Letting go of models, whatever their servers do meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from dimos_streams.agent.models.protocol import Model

_BOUND_S = 1.0
_logger = logging.getLogger(__name__)


async def close_models(models: Iterable[Model]) -> None:
    """Close models side by side. What goes wrong is logged and holds up nothing: nobody uses them any more."""
    await asyncio.gather(*(_close(model) for model in models))


async def _close(model: Model) -> None:
    bound = asyncio.timeout(_BOUND_S)
    try:
        async with bound:
            await model.close()
    except Exception as error:
        if bound.expired() and isinstance(error, TimeoutError):
            _logger.warning("%s did not close within %g s", type(model).__name__, _BOUND_S)
        else:
            _logger.exception("%s failed while it was closed", type(model).__name__)
