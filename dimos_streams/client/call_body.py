"""The request for a call, as a bridge takes it over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import SkillArgumentError

MAX_LEASE_WAIT_S = 60.0
"""The longest time, in seconds, that a bridge lets a call wait for what another one holds."""


def call_body(skill: str, arguments: Mapping[str, Any], *, caller: str, **more: str | float | None) -> dict[str, Any]:
    """The body of ``POST /calls``, without what is not given. Raises ``SkillArgumentError``, which names each
    argument that JSON has no form for."""
    bad = {name: _must_be_json(value) for name, value in arguments.items() if not _is_json(value)}
    if bad:
        raise SkillArgumentError(skill, bad)
    given = {name: value for name, value in more.items() if value is not None}
    return {"skill": skill, "arguments": dict(arguments), "caller": caller, **given}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _must_be_json(value: Any) -> str:
    valid = "texts, finite numbers, true, false, null, lists and objects"
    return f"it must have a form in JSON, {valid} (given: {shortened(repr(value), 80)})"
