"""A kind of an agent's events, with the type of their data: mypy checks what is logged and what is read by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, cast

from dimos_streams.operator.messages.agent import AgentEvent

P = ParamSpec("P")
D_co = TypeVar("D_co", covariant=True)


class Kind(str, Generic[P, D_co]):
    """The name of a kind, as events have it. ``D_co`` is the type of their data, ``P`` its fields: the keywords with
    which an event is logged."""

    types: tuple[Callable[..., Any], ...]
    """The types of its data: one, or one for each ``phase``."""

    def __new__(cls, name: str, data: Callable[P, D_co]) -> Kind[P, D_co]:
        """``data`` is the ``TypedDict`` of the kind's data."""
        return cls._made(name, data)

    @classmethod
    def of_phases(cls, name: str, *phases: Callable[..., D_co]) -> PhasedKind[D_co]:
        """A kind whose data has one of several types, told apart by their ``phase``."""
        return cast("PhasedKind[D_co]", cls._made(name, *phases))

    @classmethod
    def _made(cls, name: str, *types: Callable[..., Any]) -> Kind[P, D_co]:
        kind = super().__new__(cls, name)
        kind.types = types
        return kind

    def data_of(self, event: AgentEvent) -> D_co | None:
        """The data of an event of this kind; None for an event of another one."""
        return cast("D_co", event.data) if event.kind == self else None


PhasedKind: TypeAlias = Kind[[D_co], D_co]
"""A kind with phases: an event of it is logged with the whole data of one of them."""
