"""The bridge's answers that `status` reads, as far as it needs them: what else is in them is passed on as it came."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter


class _Answer(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class HubCounts(_Answer):
    """Events on the way to the readers."""

    readers: int
    lag: int
    coalesced: int
    cut: int


class ReceiverCounts(_Answer):
    """Events on the way in."""

    delivered: int
    gaps: int
    malformed: int


class Counts(_Answer):
    """How much there is of what."""

    open_calls: int
    leases: dict[str, str]
    hub: HubCounts
    receiver: ReceiverCounts


class Health(_Answer):
    """The answer to ``GET /healthz``."""

    status: str
    lost: tuple[str, ...]
    offset: int
    counts: Counts


class Module(_Answer):
    """One of the answers to ``GET /modules``."""

    name: str
    pid: int
    health: str
    alive: bool
    introduced: bool
    state: dict[str, Any]


HEALTH = TypeAdapter(Health)
MODULES = TypeAdapter(list[Module])
