"""An agent's conversation, as a test sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from dimos_streams.errors import UserError, suggest

if TYPE_CHECKING:
    from dimos_streams.agent.context.conversation import Conversation
    from dimos_streams.agent.context.entry import Entry


class Transcript:
    """The texts of an agent's conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Its entries, oldest first."""
        return self._conversation.entries

    @property
    def text(self) -> str:
        """The whole conversation, a line for each entry."""
        return "\n".join(_line(entry) for entry in self.entries)

    def contains(self, text: str, *, role: str | None = None) -> bool:
        """Return whether an entry has a text, or calls that skill; ``role`` is ``operator``, ``assistant``, … Raises
        ``UserError`` for a role that no entry has."""
        from dimos_streams.agent.context.entry import Role

        roles: tuple[str, ...] = get_args(Role)
        if role is not None and role not in roles:
            raise UserError(f"no entry has the role {role!r}{suggest(role, roles)} (valid: {', '.join(roles)})")
        return any(text in _line(entry) for entry in self.entries if role in (None, entry.role))


def _line(entry: Entry) -> str:
    called = " ".join(f"{call.name}({call.arguments})" for call in entry.tool_calls)
    return " ".join(part for part in (f"{entry.role}:", entry.note, entry.text, called) if part)
