"""Query parameters that nobody reads: a misspelt filter would otherwise be none, without a word."""

from __future__ import annotations

from collections.abc import Collection

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

_MAX_NAME, _MAX_NAMED = 100, 20


def query_names(route: APIRoute) -> frozenset[str]:
    """The query parameters that a route reads; ``token`` is read before it."""
    return frozenset(field.alias for field in route.dependant.query_params)


def check_query(request: Request, names: Collection[str]) -> None:
    """Raises ``RequestValidationError`` if a request has other query parameters than ``names`` and ``token``."""
    unknown = sorted(request.query_params.keys() - {*names, "token"})[:_MAX_NAMED]
    if unknown:
        text = f"there is no such parameter; valid: {', '.join(sorted(names))}"
        given = {name: request.query_params[name] for name in unknown}
        raise RequestValidationError(
            [
                {"type": "extra_forbidden", "loc": ("query", name[:_MAX_NAME]), "msg": text, "input": value}
                for name, value in given.items()
            ]
        )
