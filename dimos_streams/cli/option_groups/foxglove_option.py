"""The option ``--foxglove``, whose value may be left out, which typer does not know."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dimos_streams.foxglove.address import DEFAULT_HOST, DEFAULT_PORT

FOXGLOVE: Final = "--foxglove"
_ADDRESS = re.compile(r"\d+|.*:\d*|localhost|[\d.]+")


def with_default_address(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command line, in which ``--foxglove`` gets an address if none follows it."""
    given = [*arguments]
    for index, argument in enumerate(arguments):
        if argument == "--":
            break
        follows = arguments[index + 1] if index + 1 < len(arguments) else ""
        if argument == FOXGLOVE and (not _ADDRESS.fullmatch(follows) or follows.startswith("-")):
            given[index] = f"{FOXGLOVE}={DEFAULT_HOST}:{DEFAULT_PORT}"
    return given
