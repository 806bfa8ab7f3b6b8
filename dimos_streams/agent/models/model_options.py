"""The options by which a model is asked, and what it costs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from dimos_streams.agent.models.protocol import TokenUsage
from dimos_streams.common.schemas.frozen_model import FrozenModel


class Pricing(FrozenModel):
    """The price of a million tokens, in US dollars."""

    input: float = Field(default=0.0, ge=0)
    """The price of a million tokens of requests."""
    output: float = Field(default=0.0, ge=0)
    """The price of a million tokens of answers."""
    cached: float | None = Field(default=None, ge=0)
    """The price of input that the server had seen before; None if it costs as much as other input."""

    def cost(self, usage: TokenUsage) -> float:
        """The cost of the tokens, in US dollars."""
        cached = self.input if self.cached is None else self.cached
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1e6


class ModelOptions(FrozenModel):
    """The options by which a model is asked. Models without a server heed ``pricing`` and the bounds only."""

    temperature: float | None = Field(default=None, ge=0)
    """The temperature; None for the server's own."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Maximum number of tokens of one answer; None for the server's bound."""
    vision: bool | Literal["auto"] = "auto"
    """True if images are sent; ``"auto"`` sends them until the server refuses one."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request, as the server names them."""
    silence_s: float = Field(default=30.0, gt=0)
    """The longest time in s in which the model may say nothing. Local models need it for long prompts."""
    attempts: int = Field(default=5, ge=1)
    """Maximum number of requests for one answer, the first included, while it fails in ways that may pass."""
    first_wait_s: float = Field(default=0.5, ge=0)
    """The wait in s before the second attempt; doubled for each further one, up to 20 s, each lengthened by up to a
    half."""
    longest_wait_s: float = Field(default=60.0, gt=0)
    """The longest wait in s that a server may ask for before the next attempt; if it asks for more, it has failed."""
    pricing: Pricing | None = None
