"""The faults in the declaration of a class, all of them at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pydantic import PydanticUserError

from dimos_streams.common.schemas.declaration_error import DeclarationError


class DeclarationFaults:
    """The faults of a declaration, gathered on the way through it."""

    def __init__(self) -> None:
        self._errors: list[TypeError | NameError | PydanticUserError] = []

    def __bool__(self) -> bool:
        return bool(self._errors)

    @property
    def texts(self) -> tuple[str, ...]:
        """The faults, each once: a class and its base may say the same."""
        texts = (error.faults if isinstance(error, DeclarationError) else (str(error),) for error in self._errors)
        return tuple(dict.fromkeys(text for several in texts for text in several))

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Note what is wrong inside, and go on behind it."""
        try:
            yield
        except (TypeError, NameError, PydanticUserError) as error:
            self._errors.append(error)

    def refuse(self) -> None:
        """Raise ``DeclarationError`` with all that is noted, or the error itself where it is the only one."""
        if len(self._errors) == 1:
            raise self._errors[0]
        if self._errors:
            raise DeclarationError(self.texts)
