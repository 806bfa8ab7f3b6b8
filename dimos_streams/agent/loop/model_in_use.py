"""The model that a loop asks at the moment, and what comes with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from dimos_streams.agent.missions.limits import LoopLimits
from dimos_streams.agent.models.model_options import Pricing
from dimos_streams.agent.models.protocol import Model, TokenUsage
from dimos_streams.common.tasks import ends_within

_CLOSE_BOUND_S = 1.0
_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class ModelInUse:
    """The model that a loop asks, with the limits that suit it and its price.

    It may be replaced between answers. Sub-agents that have none of their own share that of their parent.
    """

    name: str
    """The name of the model as in the config, ``"openai:MODEL"``."""
    adapter: Model
    """The model itself, behind the protocol of all models."""
    limits: LoopLimits
    pricing: Pricing | None = None
    """The price of its tokens, or None while it is not known."""
    estimates_noted: bool = False
    """True once people know that the model reports no usage, so that its tokens are estimated."""
    _replaced: list[Model] = field(default_factory=list)
    """Models that were asked before and are still to be closed."""

    def cost(self, usage: TokenUsage) -> float | None:
        """The price of an answer in US dollars, or None if no price is known."""
        return None if self.pricing is None else self.pricing.cost(usage)

    def replace(self, other: ModelInUse) -> None:
        """Ask another model from the next answer on, within its limits. ``close_replaced`` closes the one before."""
        self._replaced.append(self.adapter)
        self.name, self.adapter = other.name, other.adapter
        self.limits, self.pricing, self.estimates_noted = other.limits, other.pricing, other.estimates_noted

    async def close_replaced(self) -> None:
        """Close the models that are not asked any more."""
        replaced, self._replaced = self._replaced, []
        await _close_all(replaced)

    async def close(self) -> None:
        """Close the model and those that were asked before it. Twice is fine."""
        await _close_all([*self._replaced, self.adapter])


async def _close_all(models: Iterable[Model]) -> None:
    """Close models side by side. What goes wrong is logged and holds up nothing: nobody uses them any more."""
    await asyncio.gather(*(_close(model) for model in models))


async def _close(model: Model) -> None:
    try:
        if not await ends_within(_CLOSE_BOUND_S, model.close()):
            _logger.warning("%s did not close within %g s", type(model).__name__, _CLOSE_BOUND_S)
    except Exception:
        _logger.exception("%s failed while it was closed", type(model).__name__)
