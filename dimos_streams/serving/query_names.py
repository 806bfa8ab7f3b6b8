"""Query parameters that nobody reads are refused: a misspelt filter would otherwise be ignored without a word."""

from __future__ import annotations

from collections.abc import Collection

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection

_MAX_NAME, _MAX_NAMED = 100, 20


def query_names(route: APIRoute) -> frozenset[str]:
    """The query parameters that a route reads; ``token`` is read before it."""
    return frozenset(field.alias for field in route.dependant.query_params)


def check_query(request: HTTPConnection, names: Collection[str]) -> None:
    """Raise ``RequestValidationError`` if a request has other query parameters than ``names`` and ``token``, or one
    of those more than once: which one counts would be anybody's guess."""
    given = request.query_params
    twice = {name: values for name in sorted(names) if len(values := given.getlist(name)) > 1}
    if twice:
        raise RequestValidationError(
            [
                {"type": "repeated", "loc": ("query", name), "msg": "it can be given once only", "input": values}
                for name, values in twice.items()
            ]
        )
    unknown = sorted(given.keys() - {*names, "token"})[:_MAX_NAMED]
    if unknown:
        text = f"there is no such parameter; valid: {', '.join(sorted(names))}"
        raise RequestValidationError(
            [
                {"type": "extra_forbidden", "loc": ("query", name[:_MAX_NAME]), "msg": text, "input": given[name]}
                for name in unknown
            ]
        )
