"""A search for those who answer on a bus, without a link to any of them."""

from __future__ import annotations

import asyncio

from dimos_streams.bus.zenoh.config import session_config
from dimos_streams.bus.zenoh.url import ZenohUrl
from dimos_streams.common.process.loopback import is_loopback

_SEARCH_S = 1.0


async def peers_found(url: ZenohUrl) -> list[str]:
    """Return where others say that they are reached, ``SCHEME/HOST:PORT``, one address of each host, after a search
    of a second. On the loopback interface answers from elsewhere are left out."""
    import zenoh

    try:
        with session_config(url) as config:
            search = zenoh.scout(what="peer|router", config=config)
    except zenoh.ZError:  # the check of the bus itself says why
        return []
    with search:
        await asyncio.sleep(_SEARCH_S)
        locators = [locator for hello in iter(search.try_recv, None) for locator in hello.locators]
    found: dict[str, str] = {}
    for locator in locators:
        host = locator.partition("/")[2].rpartition(":")[0]
        if url.interface != "lo" or is_loopback(host.strip("[]")):
            found.setdefault(host, locator)
    return list(found.values())
