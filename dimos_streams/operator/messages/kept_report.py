"""Reports of orders whose effect is to outlive the process that carries them out: they say where it would not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel


class KeptReport(FrozenModel):
    """Base of the reports of operators' orders."""

    unkept: str = Field(default="", exclude_if=lambda why: not why)
    """The reason why the agent's successor would not know of the order; empty if it would."""

    def with_unkept(self, text: str) -> str:
        """Return a text for people, which says besides if the order is not kept."""
        return f"{text}; NOT KEPT: {self.unkept}" if self.unkept else text


class UnkeptOrder(KeptReport):
    """The report of an order that was carried out and is not kept. One that is kept has its text alone as result."""

    text: str

    def __str__(self) -> str:
        return self.with_unkept(self.text)


def unkept_of(result: Any) -> str:
    """Return the reason why an order is not kept, from the result of its call; empty if it is."""
    return str(result.get("unkept", "")) if isinstance(result, Mapping) else ""
