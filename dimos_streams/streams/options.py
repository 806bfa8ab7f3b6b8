"""The options that the declaration of a stream may state."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from dimos_streams.errors import suggest

F = TypeVar("F", bound=Callable[..., None])


def options_alone(constructor: F) -> F:
    """Have a stream's constructor raise ``TypeError`` for anything but its options; the error lists these."""
    valid = [name for name in inspect.signature(constructor).parameters if name != "self"]

    @functools.wraps(constructor)
    def checked(self: object, *given: object, **options: object) -> None:
        kind = type(self).__name__
        if given:
            of = ", ".join(getattr(one, "__name__", repr(one)) for one in given)
            raise TypeError(
                f"{kind}({of}) takes options alone: the type of its messages is in brackets, {kind}[{of}]"
            )
        for name, value in options.items():
            if name not in valid:
                there_are = f"{suggest(name, valid)} (valid: {', '.join(valid) or 'none'})"
                raise TypeError(f"{kind}({name}={value!r}): there is no option {name!r}{there_are}")
        constructor(self, **cast(dict[str, Any], options))

    return cast(F, checked)
