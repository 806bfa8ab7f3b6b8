"""The results of skills, and of their errors, as text and data of a call's ``close``."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from enum import Enum
from typing import Any

from pydantic import BaseModel

from dimos_streams.common.json.depth import is_deeper
from dimos_streams.common.json.writing import json_text
from dimos_streams.errors import SkillError
from dimos_streams.module import Module
from dimos_streams.skill import SkillSpec
from dimos_streams.tool_stream.protocol.bounds import MAX_DATA_DEPTH, MAX_PAYLOAD
from dimos_streams.tool_stream.protocol.close_data import MISFIT

_logger = logging.getLogger(__name__)

MAX_ERROR = 10_000
"""Maximum length of a skill's own error, in characters: they fit into an event, however many bytes each has."""
_MAX_TEXT = 2000
_MAX_MISFIT = 500


def close_of(module: Module, spec: SkillSpec, result: Any) -> tuple[str, dict[str, Any]]:
    """Return text and data of the close of a call whose skill has returned ``result``.

    One that is not as its skill declares it is sent all the same, and said to be: to the log, and to tests where
    there is room.

    Raises ``SkillError`` for a result that has no JSON form, is nested too deep or is too large.
    """
    if isinstance(result, Generator):  # which can be gone through only once
        result = list(result)
    text, data = _result(result)
    misfit = _misfit(module, spec, result)
    if misfit is not None:
        module.log.warning("%s", misfit)
        if payload_size(text, data | {MISFIT: misfit}) <= MAX_PAYLOAD:
            data[MISFIT] = misfit
    return text, data


def _misfit(module: Module, spec: SkillSpec, result: Any) -> str | None:
    try:
        misfit = spec.result_type.misfit(spec.name, result, json_text(result))
    except Exception:  # the call has done what it was for, whatever an author's types raise when they are asked
        module.log.exception("the result of skill %r can't be compared with what it declares", spec.name)
        return None
    return None if misfit is None else misfit[:_MAX_MISFIT]


def payload_size(text: str, data: Mapping[str, Any]) -> int:
    """Return the size of an event's text and data, in bytes, as ``MAX_PAYLOAD`` bounds it."""
    return len(json_text(data).encode()) + len(text.encode("utf-8", "surrogatepass"))


def _result(result: Any) -> tuple[str, dict[str, Any]]:
    """Return text and data of a completed close. Raises ``SkillError`` if it has no JSON form, is nested too deep or
    is too large."""
    if result is None:
        return "done", {"result": None}
    try:
        encoded = json_text(result)
    except SkillError as error:
        raise SkillError(f"the result: {error}") from error
    if is_deeper(encoded, MAX_DATA_DEPTH - 1):  # it is within the data of the close
        raise SkillError(f"the result is nested more than {MAX_DATA_DEPTH - 1} deep; give a reference instead")
    text = (result if isinstance(result, str) else _own_text(result) or encoded)[:_MAX_TEXT]
    data = {"result": result}
    if (size := payload_size(text, data)) > MAX_PAYLOAD:
        raise SkillError(
            f"the result and its text have {size} bytes, {MAX_PAYLOAD} are possible; give a reference instead"
        )
    return text, data


def error_data(error: SkillError) -> dict[str, Any]:
    """Return the data of a failed close. A result that can't be sent is left out: the error counts for more."""
    data: dict[str, Any] = {"error": type(error).__name__}
    if error.result is not None:
        try:
            _, result_data = _result(error.result)
            size = payload_size(str(error)[:MAX_ERROR], result_data)
        except SkillError as unfit:
            _logger.warning("the result of a failed call is left out: %s", unfit)
        else:
            return data | result_data if size <= MAX_PAYLOAD else data
    return data


def _own_text(result: Any) -> str | None:
    """Return the text of a result if its class has one for people, and that of an enum's value; else None."""
    if isinstance(result, (dict, list, tuple, set, int, float, bool)):
        return None
    defines = next(base for base in type(result).__mro__ if "__str__" in vars(base))
    if defines in (object, BaseModel):
        return None
    return str(result.value if defines is Enum else result)
