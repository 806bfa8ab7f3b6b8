"""Leases: which call holds which resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dimos_streams.tool_stream.family import ancestors_of


class Leases:
    """Exclusive holds on named resources. A call gets all that it uses or nothing, and gives all back at once.

    What a call holds passes to a child that uses it, for as long as the child runs. Which call has passed what on to
    which follows from the ids of the calls, in whatever order they become known.
    """

    def __init__(self) -> None:
        self._holders: dict[str, list[str]] = {}
        """The calls of each resource: the last one holds it, and those before have passed it on."""
        self._resources: dict[str, list[str]] = {}
        """The resources of each call among them: each call is looked after ten times a second, so nothing here may
        take longer because of what others hold."""

    def conflicts(self, call_id: str, resources: Iterable[str]) -> dict[str, str]:
        """The resources that a call can't have, with the ids of the calls that hold them. The call itself and those
        to which it belongs don't count."""
        family = (call_id, *ancestors_of(call_id))
        return {name: holder for name, holder in self._held(resources) if holder not in family}

    def grant(self, call_id: str, resources: Iterable[str]) -> None:
        """Give the resources to a call; those that another one holds stay with it."""
        for resource in resources:
            chain = self._holders.setdefault(resource, [])
            if call_id not in chain and all(_are_kin(call_id, other) for other in chain):
                chain.append(call_id)
                chain.sort(key=lambda each: len(ancestors_of(each)))
                self._resources.setdefault(call_id, []).append(resource)

    def lacking(self, call_id: str, resources: Iterable[str]) -> dict[str, str]:
        """The resources that a call has never got, with the ids of their holders: a call that knew no broker may run
        without them. A resource that it has passed on to a child is not lacking."""
        return {name: holder for name, holder in self._held(resources) if call_id not in self._holders[name]}

    def release(self, call_id: str) -> None:
        """Take back whatever a call holds. A call that had passed it on holds it again."""
        for name in self._resources.pop(call_id, ()):
            chain = self._holders[name]
            chain.remove(call_id)
            if not chain:
                del self._holders[name]

    def holders(self) -> dict[str, str]:
        """The resources that are held, with the ids of their calls."""
        return dict(self._held(self._holders))

    def _held(self, resources: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield those of the resources that are held, each with its call."""
        return ((name, self._holders[name][-1]) for name in resources if name in self._holders)


def _are_kin(one: str, other: str) -> bool:
    """Return whether one of two calls belongs to the other."""
    return one in ancestors_of(other) or other in ancestors_of(one)
