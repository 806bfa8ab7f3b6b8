"""References to approvals, as people write them: the id or its beginning, and the revision that they have seen."""

from __future__ import annotations

import re
from typing import NamedTuple

from dimos_streams.common.readable.shortening import beginning
from dimos_streams.errors import UserError

_SHOWN = 100
_REFERENCE = re.compile(r"([A-Za-z0-9_/-]{1,200})(?:@([1-9][0-9]{0,8}))?")
_WHOLE_ID = re.compile(r".+-[0-9a-f]+-[0-9]+")
"""An agent's name, the time at which it began, and a number."""


class ApprovalReference(NamedTuple):
    """A reference to an approval: ``ID@REVISION``, as approvals are shown, or ``ID``."""

    id: str
    revision: int | None = None

    @classmethod
    def of(cls, text: str) -> ApprovalReference:
        """Read a reference. Raises ``UserError`` for a text that names no approval."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            shown = repr(beginning(text, _SHOWN))
            raise UserError(
                f"{shown} names no approval: valid is ID or ID@REVISION as `dimos-streams approvals` shows them, ID@1"
                " for what was asked first"
            )
        return cls(match[1], int(match[2]) if match[2] else None)

    @property
    def is_whole(self) -> bool:
        """True if it can't be the beginning of an id: no other approval than the one that is called so is meant."""
        return self.revision is not None or _WHOLE_ID.fullmatch(self.id) is not None
