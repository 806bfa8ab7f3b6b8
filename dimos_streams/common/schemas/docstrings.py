"""The descriptions of a function and of its parameters, read from its docstring."""

from __future__ import annotations

import re
from collections.abc import Collection

_IN_A_LINE = re.compile(r"(?:^|\s)Args:[ \t]+(?=\S)")


def described(docstring: str, parameters: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return the description of a function, and of each parameter that has one.

    Parameters are described in a section, or behind the text: ``Turn. Args: angle: How far. wait: How long.``
    """
    import docstring_parser

    parsed = docstring_parser.parse(_with_section(docstring, parameters))
    text = "\n\n".join(part for part in (parsed.short_description, parsed.long_description) if part)
    return text, {param.arg_name: param.description for param in parsed.params if param.description}


def _with_section(docstring: str, parameters: Collection[str]) -> str:
    """The docstring with its ``Args:`` in a section, if they follow in a line and name a parameter."""
    found = _IN_A_LINE.search(docstring)
    if found is None or not parameters:
        return docstring
    names = "|".join(map(re.escape, parameters))
    before, *rest = re.split(rf"(?:^|\s+)({names}):\s+", docstring[found.end() :])
    if before or not rest:
        return docstring
    lines = [f"    {name}: {' '.join(text.split())}" for name, text in zip(rest[::2], rest[1::2], strict=True)]
    return "\n".join((docstring[: found.start()].rstrip(), "", "Args:", *lines))
