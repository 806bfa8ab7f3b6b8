"""The paths of a bridge's HTTP interface that commands may use: a robot takes these, and a hub leads to no others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from dimos_streams.fleet.commands import Method, Role

_CALL = r"/calls/(?!\.{1,2}(?:/|\Z))[^/?#]+"
"""A call's path: ``.`` and ``..`` are no calls, and who follows such a path is led elsewhere."""
_OPEN: Mapping[Role, Mapping[Method, re.Pattern[str]]] = {
    "operator": {
        "GET": re.compile(rf"/(healthz|skills|modules|robots|calls)|{_CALL}"),
        "POST": re.compile(rf"/calls|/calls/cancel|{_CALL}/cancel|/robots/(stop|release)|/settings"),
    },
    # A model holds no robot against its operators, and changes no setting.
    "model": {
        "GET": re.compile(rf"/(healthz|skills)|{_CALL}"),
        "POST": re.compile(rf"/calls(/cancel)?|{_CALL}/cancel"),
    },
}


def bare_path(path: str) -> str:
    """The path as a bridge finds its route by it: without the query, and decoded."""
    return unquote(path.partition("?")[0])


def is_open(role: Role, method: Method, path: str) -> bool:
    """Return whether somebody may ask a robot for a path, which may have a query, through a hub."""
    return _OPEN[role][method].fullmatch(bare_path(path)) is not None
