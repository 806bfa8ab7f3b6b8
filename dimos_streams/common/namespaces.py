"""Names of modules, and namespaces: what stands before the last slash of one."""

from __future__ import annotations

import re
from collections.abc import Iterable

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
"""The form of a module's name inside its namespace: small letters, digits and single underscores, beginning with a
letter."""


def namespace_of(module: str) -> str:
    """The namespace of a module: ``"robots/a"`` of ``"robots/a/follow"``; empty for a module in none."""
    return module.rpartition("/")[0]


def robot_of(module: str) -> str:
    """The outermost namespace of a module, which is its robot: ``"robots"`` of ``"robots/a/follow"``."""
    return namespace_of(module).partition("/")[0]


def prefix_of(module: str) -> str:
    """Return the prefix of the names in a module's namespace: ``"robots/a/"``, or nothing."""
    namespace = namespace_of(module)
    return f"{namespace}/" if namespace else ""


def namespace_of_topic(topic: str, namespaces: Iterable[str]) -> str:
    """The longest of some namespaces that a topic or a channel is in: ``"robot1"`` for ``"/robot1/odom"``.

    Empty if it is in none.
    """
    return max((name for name in namespaces if name and topic.startswith(f"/{name}/")), key=len, default="")
