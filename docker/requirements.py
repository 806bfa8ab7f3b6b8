"""Prints what has to be installed before the package, from ``pyproject.toml`` alone: ``requirements.py [EXTRAS]``.

So a layer of an image has the dependencies, and is made again when they change, not with every edit of the sources.
``--build`` prints what builds the package.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_OWN_EXTRAS = re.compile(r"dimos-streams\[(.+)\]")


def requirements(project: Mapping[str, Any], extras: Iterable[str]) -> list[str]:
    """The dependencies of a project with some of its extras. Raises ``SystemExit`` for one that it has not."""
    offered = project["optional-dependencies"]
    return list(dict.fromkeys([*project["dependencies"], *_of_extras(offered, extras)]))


def _of_extras(offered: Mapping[str, Sequence[str]], extras: Iterable[str]) -> Iterator[str]:
    for extra in extras:
        if extra not in offered:
            sys.exit(f"EXTRAS: pyproject.toml has no extra {extra!r} (extras: {', '.join(sorted(offered))})")
        for line in offered[extra]:
            own = _OWN_EXTRAS.fullmatch(line)
            yield from [line] if own is None else _of_extras(offered, own[1].split(","))


if __name__ == "__main__":
    document = tomllib.loads(Path("pyproject.toml").read_text())
    wanted = [extra.strip() for extra in "".join(sys.argv[1:]).split(",") if extra.strip()]
    build = wanted == ["--build"]
    print("\n".join(document["build-system"]["requires"] if build else requirements(document["project"], wanted)))
