"""The arguments of a call that Python code makes, as data that a request can carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dimos_streams.common.json.losses import lost_numbers
from dimos_streams.common.json.writing import plain_data
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import SkillArgumentError, SkillError

_SHOWN = 80


def plain_arguments(skill: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments, which may be pydantic models, dataclasses and enums, as JSON data.

    Raises ``SkillArgumentError``, which names each that JSON has no form for. A number that it does not have is
    refused as well, and does not become null: a skill may take that for an argument that was left out.
    """
    plain: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in arguments.items():
        try:
            plain[name] = plain_data(value)
        except SkillError as error:
            problems[name] = str(error)
    for path, number in lost_numbers(plain):
        problems[path] = f"it must be a finite number (given: {shortened(number, _SHOWN)})"
    if problems:
        raise SkillArgumentError(skill, problems)
    return plain
