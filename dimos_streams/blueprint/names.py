"""Names in blueprints, of modules, namespaces and machines, and what topics are called inside a namespace."""

from __future__ import annotations

import re
import sys

from dimos_streams.common.names import MODULE_NAME
from dimos_streams.errors import UserError

_MACHINE = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")


def absolute(name: str, prefix: str = "") -> str:
    """A topic or channel with its namespaces' prefix, unless it is absolute already."""
    return name if name.startswith("/") else f"/{prefix}{name}"


def inside(channel: str, namespace: str) -> str:
    """A topic or channel of what is inside a namespace, unless it is absolute."""
    return channel if channel.startswith("/") else f"{namespace}/{channel}"


def run_name(blueprint: str, machine: str = "") -> str:
    """The name of the runs of a blueprint, or of a machine's part of it: as a directory may be called here. A locale
    that is not UTF-8 has no bytes for many letters, or such as others read differently."""
    called = f"{blueprint}@{machine}" if machine else blueprint
    has_all = sys.getfilesystemencoding() == "utf-8"
    return re.sub(r"[^\w.@-]", "_", called, flags=0 if has_all else re.ASCII) or "run"


def checked_name(name: str) -> str:
    """The name of a module or process. Raises ``UserError`` unless it has only a-z, 0-9 and single underscores."""
    if not MODULE_NAME.fullmatch(name):
        raise UserError(f"{name!r} can't be a name: use a-z, 0-9 and single underscores, beginning with a letter")
    return name


def checked_namespace(namespace: str) -> str:
    """A namespace: names with slashes between. Raises ``UserError`` for anything else."""
    for part in namespace.split("/"):
        checked_name(part)
    return namespace


def checked_machine(name: str) -> str:
    """The name of a machine: as a module's, but with hyphens too, and with namespaces. Raises ``UserError`` for
    anything else."""
    if not all(map(_MACHINE.fullmatch, name.split("/"))):
        raise UserError(
            f"{name!r} can't be the name of a machine: use a-z, 0-9 and single '-' or '_', beginning with a letter"
        )
    return name
