"""The declared type of a skill's result, and how a returned value differs from it."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from dimos_streams.common.invalid import first_problem
from dimos_streams.common.json.losses import lost_numbers
from dimos_streams.common.json.writing import plain_data
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.schemas.references import inlined
from dimos_streams.common.secrets import redacted

_SHOWN = 80
"""Maximum number of characters of a result that are shown."""
_BUILDING = object()


class ResultType:
    """The type of a skill's result, as its signature has it; ``Any`` if it has none."""

    def __init__(self, declared: Any = Any) -> None:
        self._declared = declared
        self._adapter: Any = _BUILDING

    @functools.cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of what callers get, without references; an empty one where nothing is known."""
        adapter = self._checked_by()
        try:
            return {} if adapter is None else inlined(adapter.json_schema(mode="serialization"))
        except (ValueError, PydanticUserError):  # it has no schema, or contains itself
            return {}

    def misfit(self, skill: str, result: Any, encoded: str) -> str | None:
        """Return how a result is not what its skill declares, or not what callers get, in words; None if all is well.

        ``encoded`` is its JSON, which callers get: only that is shown, because a model may keep fields to itself.
        """
        why = self._loss(result) if "null" in encoded else None
        why = why or self._refusal(result, encoded)
        if why is None:
            return None
        declared = "" if self._declared is Any else f", declared as {inspect.formatannotation(self._declared)}"
        shown = shortened(redacted(encoded), _SHOWN)
        return redacted(f"skill {skill!r} has returned {shown}{declared}: {why}")

    def _loss(self, result: Any) -> str | None:
        """Return which number of a result JSON does not have, if there is one."""
        for path, number in lost_numbers(plain_data(result)):
            return f"{path or 'the result'}: callers get null, because JSON has no {number}"
        return None

    def _refusal(self, result: Any, encoded: str) -> str | None:
        """Return why a result is not of the type: neither as it is, nor as callers get it."""
        adapter = self._checked_by()
        if adapter is None:
            return None
        try:
            adapter.validate_json(encoded, strict=True)
        except ValidationError as error:
            return None if _takes(adapter, result) else first_problem(error, "the result")
        except PydanticUserError:  # it names what only type checkers import
            return None
        except Exception as error:
            return f"its check fails ({type(error).__name__}: {error})"
        return None

    def _checked_by(self) -> TypeAdapter[Any] | None:
        if self._adapter is _BUILDING:
            try:
                self._adapter = TypeAdapter(self._declared)
            except Exception:  # a type that pydantic does not know says nothing about JSON
                self._adapter = None
        found: TypeAdapter[Any] | None = self._adapter
        return found


def _takes(adapter: TypeAdapter[Any], result: Any) -> bool:
    """Return whether a type has a result as it is: models may be written with other names than they are read by."""
    try:
        adapter.validate_python(result, strict=True)
    except Exception:  # an author's validator may raise whatever it likes
        return False
    return True
