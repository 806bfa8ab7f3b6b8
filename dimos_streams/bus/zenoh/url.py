"""``zenoh://`` URLs: the peers, the keys that they use, how far they are heard, and who may take part."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode

from dimos_streams.bus.zenoh.keys import KeySpace
from dimos_streams.common.process.loopback import is_loopback
from dimos_streams.common.schemas.host_name import host_fault
from dimos_streams.common.secrets import unreadable_url
from dimos_streams.errors import BusUrlError, suggest

EXAMPLE = "zenoh://"
MODES = ("peer", "client", "router")
DEFAULT_DOMAIN = "dimos_streams"
DIMOS = "dimos"
_DIMOS_DOMAINS = "dimos-domains"
_LOOPBACK_LISTEN = "127.0.0.1:0"
_SCOUTING_GROUP = "224.0.0.224"
_ZENOH_SCOUTING_PORT = 7446
_SCOUTING_PORTS = range(20_000, 30_000)
"""Ports for scouting, one for each domain, so that the peers of different domains do not even link."""
_OPTIONS = ("keys", "mode", "listen", "scout", "interface", "ca", "cert", "key", "users", "config")
_OPTION_BEGINS = tuple(f"{name}=" for name in _OPTIONS)
_URL = re.compile(r"([^:/?#]+):(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
"""A URL as RFC 3986, appendix B, takes it apart: ``urlsplit`` refuses several addresses of which one has brackets."""
_DOMAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZenohUrl:
    """``zenoh://[USER:PASSWORD@][HOST:PORT,…][/DOMAIN][?OPTION=VALUE&…]``.

    Without hosts its peers find each other by scouting on the loopback interface, and nothing leaves the machine.
    """

    endpoints: tuple[str, ...] = ()
    """The addresses to connect to, ``HOST:PORT``."""
    domain: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    keys: str = ""
    """``"dimos"`` for the keys of dimos; empty for ours."""
    mode: str = "peer"
    listen: tuple[str, ...] = ()
    """The addresses to be reached at, ``HOST:PORT``; port 0 is any free one."""
    scout: str = ""
    """The multicast group for scouting, ``GROUP:PORT``; ``"off"`` for none, empty for the domain's own."""
    interface: str = "lo"
    """The network interface on which peers look for each other."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Paths by name: ``ca``, ``cert`` and ``key`` of TLS; ``users`` who may connect; ``config``, settings of Zenoh's
    own."""

    @classmethod
    def parse(cls, text: str) -> ZenohUrl:
        """Parse a URL. Raises ``BusUrlError`` with the part that does not fit."""
        try:
            return cls(**_fields(text))
        except ValueError as error:
            shown = unreadable_url(text, _OPTIONS)
            raise BusUrlError(f"bad bus URL {shown!r}: {error}; valid for example: {EXAMPLE!r}") from None

    def __str__(self) -> str:
        """Return the whole URL, with the password."""
        user = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@" if self.user else ""
        path = f"/{self.domain}" if self.domain else ""
        named = {"keys": self.keys, "mode": "" if self.mode == "peer" else self.mode}
        named |= {"listen": ",".join(self.listen), "scout": self.scout}
        named |= {"interface": "" if self.interface == "lo" else self.interface, **self.files}
        options = urlencode({name: value for name, value in named.items() if value}, safe=":,/")
        return f"zenoh://{user}{','.join(self.endpoints)}{path}" + (f"?{options}" if options else "")

    @property
    def key_space(self) -> KeySpace:
        """The mapping of channels to keys."""
        if self.keys == DIMOS:
            return KeySpace(f"{_DIMOS_DOMAINS}/{self.domain}" if self.domain else DIMOS)
        return KeySpace(self.domain or DEFAULT_DOMAIN)

    @property
    def scouting(self) -> str | None:
        """The ``GROUP:PORT`` at which peers look for each other, or None if they don't.

        With the keys of dimos it is Zenoh's usual one, in every domain, as in dimos itself.
        """
        if self.scout:
            return None if self.scout == "off" else self.scout
        if self.keys == DIMOS:
            return f"{_SCOUTING_GROUP}:{_ZENOH_SCOUTING_PORT}"
        domain = (self.domain or DEFAULT_DOMAIN).encode()
        return f"{_SCOUTING_GROUP}:{_SCOUTING_PORTS[zlib.crc32(domain) % len(_SCOUTING_PORTS)]}"

    @property
    def listening(self) -> tuple[str, ...]:
        """The addresses ``HOST:PORT`` at which this peer is reached: on this machine only, unless the URL says
        otherwise."""
        return self.listen or (() if self.mode == "client" else (_LOOPBACK_LISTEN,))

    @property
    def is_local(self) -> bool:
        """True if nothing that is sent leaves the machine."""
        return self.interface == "lo" and all(_is_loopback(each) for each in (*self.endpoints, *self.listening))


def _fields(text: str) -> dict[str, Any]:
    """Return the fields of a URL. Raises ``ValueError``, whose text has nothing of a password."""
    parts = _split(text)
    if parts.scheme != "zenoh" or parts.fragment:
        raise ValueError("it has no scheme 'zenoh'" if parts.scheme != "zenoh" else f"#{parts.fragment} says nothing")
    user_info, _, hosts = parts.netloc.rpartition("@")
    user, _, password = user_info.partition(":")
    if bool(user) != bool(password):
        raise ValueError("a user needs a password, and a password a user")
    if not (unquote(user + password).isprintable() and ":" not in unquote(user)):
        raise ValueError("a user has no ':', and neither it nor its password a line end")
    domain = parts.path.strip("/")
    if domain and not _DOMAIN.fullmatch(domain):
        raise ValueError(f"{domain!r} is no domain (letters, digits, '_', '-' and '.', at most 64)")
    return {
        "endpoints": tuple(_addresses(hosts)),
        "domain": domain,
        "user": unquote(user),
        "password": unquote(password),
        **_checked(_options(parts.query), has_endpoints=bool(hosts)),
    }


def _split(text: str) -> SplitResult:
    match = _URL.fullmatch(text)
    if match is None:
        raise ValueError("it has no scheme 'zenoh'")
    parts = SplitResult(match[1].lower(), *(part or "" for part in match.groups()[1:]))
    if _is_ambiguous(parts.netloc):
        raise ValueError("what is between '//' and the next '/' is no USER:PASSWORD@HOST:PORT")
    # A value of an option may have an '@', but then what is before it is an option of ours.
    if "@" in parts.path + parts.fragment or ("@" in parts.query and not parts.query.startswith(_OPTION_BEGINS)):
        raise ValueError("in a user and a password '/', '?', '#' and '@' are written as %2F, %3F, %23 and %40")
    return parts


def _is_ambiguous(netloc: str) -> bool:
    """Return whether other programs would find its parts elsewhere: brackets outside an address, or characters of
    which others make a separator (NFKC)."""
    user_info = netloc.rpartition("@")[0]
    plain = netloc.translate(dict.fromkeys(map(ord, "@:")))
    return bool(set(user_info) & set("[]") or set(unicodedata.normalize("NFKC", plain)) & set("/?#@:"))


def _options(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:  # it quotes what may be a password
        raise ValueError(f"what is after '?' is no OPTION=VALUE&… (options: {', '.join(_OPTIONS)})") from None


def _checked(options: Mapping[str, str], *, has_endpoints: bool) -> dict[str, Any]:
    for name, value in options.items():
        if name not in _OPTIONS:
            raise ValueError(f"no option {name!r}{suggest(name, _OPTIONS)} (options: {', '.join(_OPTIONS)})")
        if not value:
            raise ValueError(f"option {name!r} is empty")
    mode = options.get("mode", "peer")
    if mode not in MODES:
        raise ValueError(f"no mode {mode!r} (modes: {', '.join(MODES)})")
    if mode == "client" and not has_endpoints:
        raise ValueError("a client needs the address of a router: 'zenoh://HOST:PORT?mode=client'")
    if options.get("keys", DIMOS) != DIMOS:
        raise ValueError(f"no keys {options['keys']!r} (valid: {DIMOS!r}, or none for our own)")
    if "scout" in options and options["scout"] != "off":
        _check_group(options["scout"])
    if ("cert" in options) != ("key" in options):
        raise ValueError("'cert' and 'key' go together")
    files = {name: options[name] for name in ("ca", "cert", "key", "users", "config") if name in options}
    others = {name: options[name] for name in ("keys", "scout", "interface") if name in options}
    return {"mode": mode, "listen": tuple(_addresses(options.get("listen", ""))), "files": files, **others}


def _addresses(text: str) -> Iterator[str]:
    for address in filter(None, text.split(",")):
        host, colon, port = address.rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"{address!r} is no HOST:PORT")
        if fault := host_fault(host):
            raise ValueError(f"{address!r} is no HOST:PORT: {fault}")
        yield address


def _check_group(text: str) -> None:
    host, _, port = text.rpartition(":")
    try:
        is_group = ipaddress.IPv4Address(host).is_multicast and 0 < int(port) <= 65535
    except ValueError:
        is_group = False
    if not is_group:
        raise ValueError(f"scout={text!r} is no GROUP:PORT of multicast, nor 'off'")


def _is_loopback(address: str) -> bool:
    return is_loopback(address.rpartition(":")[0].strip("[]"))
