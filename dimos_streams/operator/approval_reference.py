"""How people name an approval: by its id or the beginning of that, at the revision that they have seen."""

from __future__ import annotations

from typing import NamedTuple

from dimos_streams.errors import UserError

_SHOWN = 100


class ApprovalReference(NamedTuple):
    """``ID@REVISION``, as approvals are shown, or ``ID``."""

    id: str
    revision: int | None = None

    @classmethod
    def of(cls, text: str) -> ApprovalReference:
        """Raises ``UserError`` for what names no approval."""
        id, at, revision = text.partition("@")
        if not id or (at and not (revision.isascii() and revision.isdecimal() and 0 < len(revision) < 10)):
            raise UserError(
                f"{text[:_SHOWN]!r} names no approval: valid is ID or ID@REVISION as `dimos-streams approvals` shows"
                " them, ID@1 for what was asked first"
            )
        return cls(id, int(revision) if at else None)
