"""The message types that are known by name: this package's, and those of other packages.

Other packages' are found through entry points, through import paths in an environment variable, and as soon as a
module of this process has a stream of them. A name that comes from a bus or a file is only looked up, never imported.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from dimos_streams.common.importing import import_module
from dimos_streams.errors import UserError, suggest
from dimos_streams.messages.base import Message
from dimos_streams.messages.index import TYPE_NAMES
from dimos_streams.messages.plain_classes import is_message_class, message_class

GROUP = "dimos_streams.messages"
"""The group of entry points, each the import path of a package of message classes."""
VARIABLE = "DIMOS_STREAMS_MESSAGES"
"""Further import paths, with commas between them."""

_OWN = "dimos_streams.messages"
_REMEDY = (
    f"; types of other packages are known by an entry point in {GROUP!r}, once they are installed with"
    f" it, or by their import path in {VARIABLE} ({VARIABLE}=my_package.messages)"
)

_SAME_PACKAGE = 0.85
"""How similar the names of packages are that may be meant to be one; those of others have ``_msgs`` in common."""

_STOCK = frozenset(TYPE_NAMES)
_used: dict[str, type[Message]] = {}


@dataclass(frozen=True, slots=True)
class Installed:
    """The types of other packages, and what keeps packages from being used."""

    types: Mapping[str, type[Message]]
    problems: tuple[str, ...] = ()


def find(name: str) -> type[Message] | None:
    """The class of a type such as ``"geometry_msgs.Twist"``, or None if there is none."""
    return _stock(name) if name in _STOCK else _used.get(name) or installed().types.get(name)


def known_definition(name: str) -> type[Message] | None:
    """The definition of a name that does not depend on what modules of this process use."""
    return _stock(name) if name in _STOCK else installed().types.get(name)


def type_names() -> list[str]:
    """The names of all known types, in order."""
    return sorted({*TYPE_NAMES, *_used, *installed().types})


def use(cls: type[Message]) -> None:
    """Know a type by its name from now on, because a module has a stream of it. The first of a name stays."""
    if cls.msg_name not in _STOCK:
        _used.setdefault(cls.msg_name, cls)


def forget() -> None:
    """Know nothing any more of what other packages have brought: their modules are to be imported anew."""
    _used.clear()
    _installed.cache_clear()


def hint(name: str) -> str:
    """The end of a message about an unknown type: the nearest known one, or else how types of other packages become
    known, and which packages can't be used."""
    near = _nearest(name)
    unusable = "".join(f"; {problem}" for problem in installed().problems)
    remedy = "" if near or unusable or "." not in name else _REMEDY
    return f"{near}{remedy}{unusable}"


def problems_of_environment() -> list[str]:
    """Return what keeps packages that the environment names from being used."""
    return [problem for problem in installed().problems if problem.startswith(f"{VARIABLE}: ")]


def _nearest(name: str) -> str:
    """Suggest types of the package that is named, or of the one that is nearly called so: the type of another package
    is another type, however similar its name."""
    package, dot, type_name = name.rpartition(".")
    known = type_names()
    if not dot:
        return suggest(name, known)
    packages = {each.rpartition(".")[0] for each in known}
    for near in difflib.get_close_matches(package, packages, n=1, cutoff=_SAME_PACKAGE):
        prefix = f"{near}."
        types = [each.removeprefix(prefix) for each in known if each.startswith(prefix)]
        return suggest(type_name, types, before=prefix)
    return ""


@functools.cache
def _stock(name: str) -> type[Message]:
    package, _, type_name = name.partition(".")
    found: type[Message] = getattr(importlib.import_module(f"{_OWN}.{package}"), type_name)
    return found


def installed() -> Installed:
    """The types that entry points and the environment name."""
    return _installed(os.environ.get(VARIABLE, ""))


@functools.cache
def _installed(listed: str) -> Installed:
    types: dict[str, type[Message]] = {}
    problems: list[str] = []
    for path, source in _paths(listed):
        try:
            found = types_in(path)
        except UserError as error:
            problems.append(f"{source}: {error}")
            continue
        for name, cls in found.items():
            known = types.setdefault(name, cls)
            if known._get_packed_fingerprint() != cls._get_packed_fingerprint():
                problems.append(
                    f"{source}: {name} of {path!r} differs from that of {known.__module__!r}, which counts"
                )
    return Installed(dict(sorted(types.items())), tuple(problems))


def _paths(listed: str) -> Iterator[tuple[str, str]]:
    for path in filter(None, map(str.strip, listed.split(","))):
        yield path, VARIABLE
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        yield entry.value, f"entry point {entry.name!r} of {GROUP}"


def types_in(path: str) -> dict[str, type[Message]]:
    """The message types by name of a Python package that ``messages generate`` or lcm-gen has made.

    Raises ``UserError`` if it can't be imported, and if it has no message types or unsuitable ones.
    """
    module = import_module(path)
    try:
        found = {cls.msg_name: cls for cls in _classes_in(module)}
    except (TypeError, AttributeError) as error:
        raise UserError(f"the messages of {path!r} can't be used: {error}") from error
    if not found:
        raise UserError(
            f"{path!r} has no message classes: name the package that 'dimos-streams messages generate' or "
            "'lcm-gen --python' has made"
        )
    foreign = found.keys() & _STOCK
    for name in sorted(foreign):
        if find(name) is not found[name]:
            raise UserError(
                f"{path!r} defines {name}, which is a type of dimos_streams: use that one, or another name"
            )
    return found


def _classes_in(module: ModuleType) -> Iterator[type[Message]]:
    names: Any = getattr(_index_of(module), "TYPE_NAMES", ())
    for name in names:
        package, _, type_name = name.partition(".")
        yield getattr(import_module(f"{module.__name__}.{package}"), type_name)
    if not names:
        for found in vars(module).values():
            if is_message_class(found) and found.__module__.startswith(f"{module.__name__}."):
                yield message_class(found)


def _index_of(module: ModuleType) -> ModuleType | None:
    try:
        return importlib.import_module(f"{module.__name__}.index")
    except ModuleNotFoundError:
        return None
