"""Operators' commands: parsed, carried out as calls, answered."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ValidationError

from dimos_streams.bridge.calls.broker import Broker
from dimos_streams.bridge.calls.closing import conflict_of
from dimos_streams.bridge.monitor.lanes import Lanes, SharedLanes
from dimos_streams.bridge.monitor.view import message
from dimos_streams.common.invalid import in_a_line, problems_with_values
from dimos_streams.common.json.reading import parse_client_json
from dimos_streams.common.secrets import redacted_data
from dimos_streams.errors import (
    DimosStreamsError,
    SkillArgumentError,
    SkillUnavailableError,
    UnknownAgentError,
    UnknownCallError,
)
from dimos_streams.operator.agents import call_for, choose_agent
from dimos_streams.operator.known_names import OPERATOR
from dimos_streams.operator.messages.commands import COMMAND_NAMES, AgentCommand, Cancel, Command, Say, id_of
from dimos_streams.operator.messages.server import CommandProblem
from dimos_streams.operator.schema import COMMANDS
from dimos_streams.serving.problems import log_internal_error

_WAIT_S = 10.0
"""Maximum time, in seconds, that an operator's skill may take."""


class Commands:
    """Turns text from a client into calls, and what becomes of them into ``reply`` and ``error`` messages."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._shared = SharedLanes(lambda: broker.directory.outdated_s)

    async def carry_out(self, text: str, lanes: Lanes) -> bytes:
        """Carry out a command in its turn, and return the answer, which has no ``seq`` yet. Any text gets one."""
        try:
            given = parse_client_json(text)
        except ValueError as error:
            return _error(None, "bad-json", f"not JSON: {error}")
        id = id_of(given)
        try:
            command = COMMANDS.validate_python(given)
        except ValidationError as error:
            errors = problems_with_values(error, "command")
            # An unknown name has those that are known beside it.
            lacks = errors.keys() == {"command"} and error.errors()[0]["type"] != "union_tag_invalid"
            valid = f" (commands: {', '.join(COMMAND_NAMES)})" if lacks else ""
            return _error(id, "bad-command", f"not a command: {in_a_line(errors)}{valid}", errors)
        try:
            async with lanes.place(command, self._shared):
                return await self._carry_out(command)
        except DimosStreamsError as error:
            return _error(id, _problem(error), str(error), _fields(error))
        except Exception as error:
            return _error(id, "internal", log_internal_error(error, command.command)[1])

    async def _carry_out(self, command: Command) -> bytes:
        if isinstance(command, Cancel):
            await self._broker.cancel(command.call_id, command.reason)
            return _reply(command, command.call_id, text=f"call {command.call_id} is asked to end")
        return await self._call(command)

    async def _call(self, command: AgentCommand) -> bytes:
        agent = choose_agent(await self._broker.agents(command.agent), command.agent)
        name, arguments = call_for(command)
        skill = agent.skill(name)
        call_id = await self._broker.call(skill, arguments, caller=OPERATOR)
        until: Literal["answer", "close"] = "answer" if isinstance(command, Say) else "close"
        ended = await self._broker.wait(call_id, until, _WAIT_S)
        view = await self._broker.view(call_id)
        if not ended:
            text = f"agent {agent.name!r} has not answered within {_WAIT_S:g} s; call {call_id} goes on"
            return _error(command.id, "unavailable", text, call_id=call_id)
        if view.outcome not in (None, "completed"):
            conflict = conflict_of(self._broker.ledger.calls.get(call_id))
            return _error(command.id, "conflict" if conflict else "refused", view.text, call_id=call_id)
        return _reply(command, call_id, text=view.text, outcome=view.outcome, result=view.result)


def _reply(command: Command, call_id: str, *, text: str, outcome: str | None = None, result: Any = None) -> bytes:
    return message(
        "reply",
        id=command.id,
        command=command.command,
        call_id=call_id,
        outcome=outcome,
        text=text,
        result=result,
    )


def _error(
    id: str | int | None, problem: CommandProblem, text: str, errors: dict[str, str] | None = None, call_id: str = ""
) -> bytes:
    said = redacted_data({"text": text, "errors": errors or {}})
    return message("error", id=id, problem=problem, **said, call_id=call_id)


def _problem(error: DimosStreamsError) -> CommandProblem:
    if isinstance(error, UnknownAgentError):
        return "unknown-agent"
    if isinstance(error, UnknownCallError):
        return "unknown-call"
    return "unavailable" if isinstance(error, SkillUnavailableError) else "refused"


def _fields(error: DimosStreamsError) -> dict[str, str]:
    return error.problems if isinstance(error, SkillArgumentError) else {}
