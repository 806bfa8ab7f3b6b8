"""A search for those who answer on a bus, without a link to any of them."""

from __future__ import annotations

import time

from dimos_streams import clock
from dimos_streams.bus.zenoh.config import session_config
from dimos_streams.bus.zenoh.url import ZenohUrl
from dimos_streams.common.process.loopback import is_loopback

_SEARCH_S = 1.0
_LOOK_S = 0.05


def peers_found(url: ZenohUrl) -> list[str]:
    """Return where others say that they are reached, ``SCHEME/HOST:PORT``, one address of each host. Blocks for a
    second; to be called in a thread. On the loopback interface answers from elsewhere are left out."""
    import zenoh

    try:
        with session_config(url) as config:
            search = zenoh.scout(what="peer|router", config=config)
    except zenoh.ZError:  # the check of the bus itself says why
        return []
    found: dict[str, str] = {}
    until = clock.monotonic() + _SEARCH_S
    with search:
        while clock.monotonic() < until:
            hello = search.try_recv()
            if hello is None:
                time.sleep(_LOOK_S)
                continue
            for locator in hello.locators:
                host = locator.partition("/")[2].rpartition(":")[0]
                if url.interface != "lo" or is_loopback(host.strip("[]")):
                    found.setdefault(host, locator)
    return list(found.values())
