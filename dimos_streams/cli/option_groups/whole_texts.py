"""Texts that were typed: of any command's only those that are UTF-8, as nothing else can be sent or kept as it is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dimos_streams.errors import UserError


def with_whole_texts(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that raises ``UserError`` for a text that is not UTF-8. Paths of files may be of any bytes."""

    @functools.wraps(command)
    def take(**given: Any) -> Any:
        for value in given.values():
            for text in value if isinstance(value, list | tuple) else [value]:
                if isinstance(text, str):
                    _check(text)
        return command(**given)

    return take


def _check(text: str) -> None:
    from dimos_streams.common.readable.surrogates import with_escaped_bytes

    if shown := with_escaped_bytes(text):
        raise UserError(f"'{shown}' is not valid UTF-8, as every text must be")
