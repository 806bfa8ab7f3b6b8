"""Zenoh's own settings, made of a URL of ours and the files that it names."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.bus.zenoh.url import ZenohUrl
from dimos_streams.common.process.disk import at_home, open_small
from dimos_streams.common.secrets import redacted
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    import zenoh

_LOCAL_LEASE_MS = 10_000
"""The silence after which a link on one machine is cut. It ends with its process anyway; one that is stopped for a
while keeps it."""
_LEASE_MS = 2_000
"""The silence after which a link between machines is cut; what was under way is thrown away then."""
_SCOUTING_MS = 200
"""The time for which the very first peer waits for others."""
_CONNECT_MS = 1_000
_RETRY = {"period_init_ms": 200, "period_max_ms": 1_000, "period_increase_factor": 2}
"""The times between attempts to connect again after a link was cut."""
_CONNECTING = ("scouting/multicast/autoconnect_strategy", "scouting/gossip/autoconnect_strategy")
_ONE_CONNECTS = {"peer": {"to_router": "always", "to_peer": "greater-zid"}}
"""The setting that only one of two peers that find each other connects: after a cut both would at the same moment,
and again."""
_QUEUE = 16
"""Maximum number of batches of 64 kB that wait for a link, for each priority: a raw picture is 15."""
_PRIORITIES = (
    "control",
    "real_time",
    "interactive_high",
    "interactive_low",
    "data_high",
    "data",
    "data_low",
    "background",
)
_FRAGMENT_WAIT_US = 1_000
"""Maximum time that a message larger than a batch may wait for room, in all, before it is dropped."""

_RECEIVED = MAX_MESSAGE + 64 * 1024
"""Maximum size of a message that is put together from fragments, in bytes, with what Zenoh puts around it."""


@contextmanager
def session_config(url: ZenohUrl) -> Iterator[zenoh.Config]:
    """Yield Zenoh's settings for a URL, for a session that is opened within the block. Raises ``UserError`` without
    the extra, or for a file that can't be used."""
    try:
        import zenoh
    except ImportError as error:
        raise UserError(
            f"bus {redacted(str(url))!r} needs Zenoh, which is not installed: pip install 'dimos-streams[zenoh]'"
        ) from error
    config = _from_file(url.files["config"]) if "config" in url.files else zenoh.Config()
    for name, value in _settings(url).items():
        config.insert_json5(name, json.dumps(value))
    if not url.user and "users" not in url.files:
        yield config
        return
    # Both ends of a link know the user: the connecting end sends the password, the listening end compares it.
    with _users(url) as users:
        for name, value in (("user", url.user), ("password", url.password), ("dictionary_file", users)):
            if value:
                config.insert_json5(f"transport/auth/usrpwd/{name}", json.dumps(value))
        yield config


def _settings(url: ZenohUrl) -> dict[str, Any]:
    secure = any(name in url.files for name in ("ca", "cert"))
    scheme = "tls" if secure else "tcp"
    settings: dict[str, Any] = {
        "mode": url.mode,
        "connect/endpoints": [f"{scheme}/{address}" for address in url.endpoints],
        "listen/endpoints": [f"{scheme}/{address}" for address in url.listening],
        "scouting/multicast/enabled": url.scouting is not None,
        "scouting/multicast/interface": url.interface,
        "scouting/delay": _SCOUTING_MS,
        "scouting/gossip/enabled": True,  # without it peers drop what they can't name
        "transport/shared_memory/enabled": False,  # loses what is larger than 3 kB
        "transport/link/tx/lease": _LOCAL_LEASE_MS if url.is_local else _LEASE_MS,
        "transport/link/rx/max_message_size": _RECEIVED,
        "transport/link/tx/queue/size": dict.fromkeys(_PRIORITIES, _QUEUE),
        "transport/link/tx/queue/congestion_control/drop/wait_before_drop": 0,
        "transport/link/tx/queue/congestion_control/drop/max_wait_before_drop_fragments": _FRAGMENT_WAIT_US,
    }
    if url.scouting is not None:
        settings["scouting/multicast/address"] = url.scouting
        if not url.is_local:
            settings |= dict.fromkeys(_CONNECTING, _ONE_CONNECTS)
    if url.endpoints:
        settings["connect/timeout_ms"] = _CONNECT_MS if url.mode == "client" else -1
        settings["connect/exit_on_failure"] = url.mode == "client"
        settings["connect/retry"] = _RETRY
    if secure:
        settings |= _tls(url)
    return settings


def _tls(url: ZenohUrl) -> dict[str, Any]:
    files = url.files
    settings: dict[str, Any] = {}
    if "ca" in files:
        settings["transport/link/tls/root_ca_certificate"] = _readable(files["ca"], "ca")
    if "cert" in files:
        certificate, key = _readable(files["cert"], "cert"), _readable(files["key"], "key")
        for side in ("listen", "connect"):
            settings[f"transport/link/tls/{side}_certificate"] = certificate
            settings[f"transport/link/tls/{side}_private_key"] = key
        settings["transport/link/tls/enable_mtls"] = "ca" in files
    return settings


@contextmanager
def _users(url: ZenohUrl) -> Iterator[str]:
    """Yield the file of the users who may connect: the URL's, or one with its own user while Zenoh reads it."""
    if "users" in url.files:
        yield _readable(url.files["users"], "users")
        return
    with tempfile.NamedTemporaryFile("wb", prefix="dimos-streams-", suffix=".users") as file:  # for this user only
        file.write(f"{url.user}:{url.password}\n".encode())
        file.flush()
        yield file.name


def _from_file(path: str) -> zenoh.Config:
    import zenoh

    try:
        return zenoh.Config.from_file(_readable(path, "config"))
    except zenoh.ZError as error:
        raise UserError(f"{path!r}, the 'config' of a zenoh bus, holds no settings of Zenoh: {error}") from error


def _readable(path: str, option: str) -> str:
    file = at_home(path)
    try:
        with open_small(file):
            return str(file)
    except OSError as error:
        raise UserError(f"{path!r}, the {option!r} of a zenoh bus, can't be read: {error.strerror}") from error
