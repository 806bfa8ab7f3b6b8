"""The commands of a chat that an agent carries out."""

from __future__ import annotations

from collections.abc import Sequence

from dimos_streams.cli.bridge_client.operator_commands import CommandGateway, CommandResult, decide, order, pending
from dimos_streams.cli.terminal.approval_text import approval_lines
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import SkillError, UserError
from dimos_streams.operator.step_words import STEP_WORDS, is_step, step_arguments

CHAT_COMMANDS = {
    "pause": "",
    "resume": "",
    "step": f" {STEP_WORDS}",
    "abort": " [rollback]",
    "undo": " [COUNT]",
    "forget": "",
    "approvals": " [ID]",
    "approve": " ID [NAME=VALUE]…",
    "reject": " ID [REASON]",
}
"""The commands of a chat that an agent carries out, with what each takes."""
_LONGEST_COUNT = 9
"""Maximum length of a number of calls, in digits."""
_SHOWN = 20
"""Maximum length of a word as an error shows it, in characters."""


async def chat_command(gateway: CommandGateway, agent: str, name: str, arguments: Sequence[str]) -> str:
    """Carry out a command that was typed in a chat with an agent; return the answer. Raises ``DimosStreamsError``,
    and ``SkillError`` for what was not done, or not all of it, or is not kept."""
    if name == "approvals" and len(arguments) <= 1:
        return "\n".join(approval_lines(await pending(gateway, agent, *arguments))) or "nothing waits for approval"
    result = await _chat_order(gateway, agent, name, arguments)
    if not result.done:
        raise SkillError(result.text)
    return result.text


async def _chat_order(gateway: CommandGateway, agent: str, name: str, arguments: Sequence[str]) -> CommandResult:
    match name, list(arguments):
        case "pause" | "resume" | "forget", []:
            return await order(gateway, name, {}, agent)
        case "step", []:
            return await order(gateway, "step", step_arguments("once"), agent)
        case "step", [word] if is_step(word):
            return await order(gateway, "step", step_arguments(word), agent)
        case "abort", [] | ["rollback"]:
            return await order(gateway, name, {"rollback": bool(arguments)}, agent)
        case "undo", [] | [_]:
            return await order(gateway, name, {"count": _count_of(arguments[0] if arguments else "1")}, agent)
        case "approve", [id, *changes]:
            return await decide(gateway, id, "approve", changes=changes, agent=agent)
        case "reject", [id, *reason]:
            return await decide(gateway, id, "reject", reason=" ".join(reason), agent=agent)
    raise UserError(f"usage: /{name}{CHAT_COMMANDS[name]} (/help lists the commands)")


def _count_of(word: str) -> int:
    """Return how many calls are to be taken back. Raises ``UserError`` if that is no number from 1 on."""
    if not word.isdecimal() or len(word) > _LONGEST_COUNT or not int(word):
        valid = f"a whole number from 1 on, of at most {_LONGEST_COUNT} digits"
        raise UserError(f"/undo {shortened(word, _SHOWN)}: how many calls are to be taken back is {valid}")
    return int(word)
