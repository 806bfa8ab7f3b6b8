"""Leases: which call holds which resource."""

from __future__ import annotations

from collections.abc import Iterable


class Leases:
    """Exclusive holds on named resources. A call gets all that it uses or nothing, and gives all back at once."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}

    def conflicts(self, resources: Iterable[str]) -> dict[str, str]:
        """Those of the resources that are taken, with the ids of the calls that hold them."""
        return {resource: self._holders[resource] for resource in resources if resource in self._holders}

    def grant(self, call_id: str, resources: Iterable[str]) -> None:
        """Give the resources to a call; those that another one holds stay with it."""
        for resource in resources:
            self._holders.setdefault(resource, call_id)

    def lacking(self, call_id: str, resources: Iterable[str]) -> dict[str, str]:
        """Those of the resources that another call holds, with its id; so a call that knew no broker may begin."""
        return {resource: holder for resource, holder in self.conflicts(resources).items() if holder != call_id}

    def release(self, call_id: str) -> None:
        """Take back whatever a call holds."""
        self._holders = {resource: holder for resource, holder in self._holders.items() if holder != call_id}

    def holders(self) -> dict[str, str]:
        """All held resources with the ids of their calls."""
        return dict(self._holders)
