"""The public names of skills, as callers in a namespace may say them."""

from __future__ import annotations

from dimos_streams.common.names import prefix_of


def public_prefix(namespace: str) -> str:
    """Return what the public names of the skills of a namespace (``"robots/a/"``) begin with: ``robots_a_``."""
    return namespace.replace("/", "_")


def own_name(skill: str, namespace: str) -> str:
    """Return the name by which the modules of a namespace know the skill of a public name, as far as it is theirs."""
    return skill.removeprefix(public_prefix(namespace))


def public_names(skill: str, asked_by: str = "") -> tuple[str, ...]:
    """The public names that may be meant by a skill of the module ``asked_by`` (``"robots/a/patrol"``), in the order
    in which they are looked for: in its namespace (``robots_a_go_to``), in those around it (``robots_go_to``), in
    none (``go_to``).

    A namespace before it may have its slashes: ``"b/go_to"`` is ``b_go_to``. One that begins with a slash is
    absolute: ``"/robots/b/go_to"`` is ``robots_b_go_to``, wherever it is said.
    """
    name = public_prefix(skill.removeprefix("/"))
    if skill.startswith("/"):
        return (name,)
    parts = prefix_of(asked_by).split("/")[:-1]
    around = ["_".join([*parts[:length], ""]) for length in range(len(parts), -1, -1)]
    return tuple(f"{prefix}{name}" for prefix in around)
