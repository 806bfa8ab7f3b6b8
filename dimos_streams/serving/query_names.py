"""Query parameters that nobody reads are refused: a misspelt filter would otherwise be ignored without a word. So are
those, and headers that routes read, that are given more than once: which one counts would be anybody's guess. And so
are texts such as ``1_0`` and `` 5``, of which Python reads numbers and others read none."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from typing import get_args

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection

_MAX_NAME, _MAX_NAMED = 100, 20
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def query_names(route: APIRoute) -> frozenset[str]:
    """The query parameters that a route reads; ``token`` is read before it."""
    return frozenset(field.alias for field in route.dependant.query_params)


def number_names(route: APIRoute) -> frozenset[str]:
    """The query parameters of a route that are numbers."""
    types = {field.alias: field.field_info.annotation for field in route.dependant.query_params}
    return frozenset(name for name, type in types.items() if not {int, float}.isdisjoint(get_args(type) or (type,)))


def header_names(route: APIRoute) -> frozenset[str]:
    """The headers that a route reads, in small letters."""
    return frozenset(field.alias for field in route.dependant.header_params)


def check_headers(request: HTTPConnection, names: Collection[str]) -> None:
    """Raise ``RequestValidationError`` if a request has one of these headers more than once."""
    _check_once("header", request.headers.getlist, names)


def check_query(request: HTTPConnection, names: Collection[str]) -> None:
    """Raise ``RequestValidationError`` if a request has other query parameters than ``names`` and ``token``, or one
    of those more than once."""
    given = request.query_params
    _check_once("query", given.getlist, names)
    unknown = sorted(given.keys() - {*names, "token"})[:_MAX_NAMED]
    if unknown:
        text = f"there is no such parameter; valid: {', '.join(sorted(names))}"
        raise RequestValidationError(
            [
                {"type": "extra_forbidden", "loc": ("query", name[:_MAX_NAME]), "msg": text, "input": given[name]}
                for name in unknown
            ]
        )


def check_numbers(request: HTTPConnection, names: Collection[str]) -> None:
    """Raise ``RequestValidationError`` if one of these query parameters is no number, and Python would read one."""
    given = {name: text for name in sorted(names) if (text := request.query_params.get(name)) is not None}
    odd = {name: text for name, text in given.items() if not _NUMBER.fullmatch(text) and _reads(text)}
    if odd:
        text = "it must be a number: digits of ASCII, without blanks and `_`"
        raise RequestValidationError(
            [{"type": "number", "loc": ("query", name), "msg": text, "input": given} for name, given in odd.items()]
        )


def _reads(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _check_once(where: str, values_of: Callable[[str], list[str]], names: Collection[str]) -> None:
    twice = {name: values for name in sorted(names) if len(values := values_of(name)) > 1}
    if twice:
        raise RequestValidationError(
            [
                {"type": "repeated", "loc": (where, name), "msg": "it can be given once only", "input": values}
                for name, values in twice.items()
            ]
        )
