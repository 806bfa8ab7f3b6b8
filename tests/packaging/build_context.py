"""The files of a directory that an engine gets to see, by its ``.dockerignore``: patterns as Docker reads them.

After moby's ``patternmatcher``, which BuildKit, buildah and podman share: the last pattern that matches a path, or a
directory above it, decides.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path


def patterns(ignore_file: Path) -> list[str]:
    """The lines of a ``.dockerignore`` that count."""
    return [line for raw in ignore_file.read_text().splitlines() if (line := raw.strip()) and not raw.startswith("#")]


def sent(paths: Iterable[str], ignored: Iterable[str]) -> set[str]:
    """Those of some paths, relative to the context, that are part of it."""
    rules = [(line.startswith("!"), _expression(line.removeprefix("!").strip())) for line in ignored]
    return {path for path in paths if not _is_ignored(path, rules)}


def _is_ignored(path: str, rules: list[tuple[bool, re.Pattern[str]]]) -> bool:
    parts = path.split("/")
    ways = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
    ignored = False
    for excepts, expression in rules:
        if any(expression.fullmatch(way) for way in ways):
            ignored = not excepts
    return ignored


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    rest = posixpath.normpath(pattern).lstrip("/")
    made = ""
    while rest:
        if rest.startswith("**"):
            rest = rest[2:].removeprefix("/")
            made += "(.*/)?" if rest else ".*"
            continue
        char, rest = rest[0], rest[1:]
        if char == "\\" and rest:
            char, rest = rest[0], rest[1:]
            made += re.escape(char)
        else:
            made += {"*": "[^/]*", "?": "[^/]"}.get(char, char if char in "[]^-" else re.escape(char))
    return re.compile(made)
