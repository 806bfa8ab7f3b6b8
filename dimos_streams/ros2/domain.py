"""A DDS domain as Cyclone DDS is told to enter it: on which interface, and how others are looked for there."""

from __future__ import annotations

import threading
from typing import Any
from xml.sax.saxutils import quoteattr

from dimos_streams.errors import UserError

LOOPBACK = "lo"
_ANNOUNCED_EVERY = "500ms"
"""The interval of announcements, by which a later robot is found: without multicast it can't make itself known."""
_LEASE = "2s"
"""The silence after which a robot forgets this participant. It has to be shorter than the robot's own lease, after
which this participant forgets the robot: a robot that still remembers this participant would not announce its topics
to it again."""
_PARTICIPANTS = 30
"""The number of processes of one machine that find each other where there is no multicast."""

_domains: dict[int, tuple[Any, str]] = {}
"""The domains that this process is in: Cyclone has each once in a process, with one configuration."""
_domains_lock = threading.Lock()


def configuration(interface: str, peers: tuple[str, ...]) -> str:
    """Cyclone's configuration: one interface, and multicast only where it is asked for."""
    alone = interface == LOOPBACK or bool(peers)
    addresses = (*peers, "127.0.0.1") if alone else peers
    listed = "".join(f"<Peer address={quoteattr(address)}/>" for address in addresses)
    discovery = (
        "<ParticipantIndex>auto</ParticipantIndex>"
        f"<MaxAutoParticipantIndex>{_PARTICIPANTS}</MaxAutoParticipantIndex><Peers>{listed}</Peers>"
        "<InitialLocatorPruneDelay>inf</InitialLocatorPruneDelay>"  # else peers are looked for in the first 30 s only
        if alone
        else ""
    )
    announced = f"<LeaseDuration>{_LEASE}</LeaseDuration><SPDPInterval>{_ANNOUNCED_EVERY}</SPDPInterval>"
    return (
        f"<CycloneDDS><Domain><General><Interfaces><NetworkInterface name={quoteattr(interface)}/></Interfaces>"
        f"<AllowMulticast>{'false' if alone else 'spdp'}</AllowMulticast></General>"
        f"<Discovery>{discovery}{announced}</Discovery></Domain></CycloneDDS>"
    )


def enter(domain_id: int, config: str) -> None:
    """Enter a domain in this process. Raises ``UserError`` if this process is in the domain in another way."""
    from cyclonedds.domain import Domain

    with _domains_lock:
        known = _domains.get(domain_id)
        if known is None:
            _domains[domain_id] = Domain(domain_id, config), config
        elif known[1] != config:
            raise UserError(
                f"two modules of one process use DDS domain {domain_id} with different interfaces or peers: "
                "give them different processes"
            )
