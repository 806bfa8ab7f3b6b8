"""The context that all parts of the link to a hub share."""

from __future__ import annotations

import random
from dataclasses import dataclass

from dimos_streams.bridge.fleet.hub_requests import HubRequests
from dimos_streams.bridge.fleet.troubles import Troubles


@dataclass(frozen=True, slots=True)
class LinkContext:
    """The hub that a part of the link talks to, the place where it reports its troubles, and its source of jitter."""

    hub: HubRequests
    troubles: Troubles
    rng: random.Random
