"""A conversation with the agent, at a prompt or through a pipe."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any

from dimos_streams.cli.bridge_client.agents import agents_named_by, find_addressee, find_say
from dimos_streams.cli.bridge_client.calls.call_list import call_table, in_families
from dimos_streams.cli.bridge_client.calls.event_watch import EventWatch, watching
from dimos_streams.cli.bridge_client.calls.paused_agents import waits_behind_pause
from dimos_streams.cli.bridge_client.calls.showing import mission_left
from dimos_streams.cli.bridge_client.calls.skill_calls import find_call
from dimos_streams.cli.bridge_client.connection import BridgeAddress, open_gateway
from dimos_streams.cli.bridge_client.declarations import Declarations
from dimos_streams.cli.consoles.chat_commands import CHAT_COMMANDS, chat_command
from dimos_streams.cli.consoles.prompt_screen import PromptScreen
from dimos_streams.cli.exit_codes import DONE, FAILED, code_of_error, worst_of
from dimos_streams.cli.system import signals
from dimos_streams.cli.system.async_runner import run_async
from dimos_streams.cli.terminal.approval_text import note_for_operators
from dimos_streams.cli.terminal.output import table_lines
from dimos_streams.cli.terminal.reporter import TextReporter
from dimos_streams.cli.terminal.screen import PlainScreen
from dimos_streams.cli.terminal.skill_text import signature
from dimos_streams.common.names import fleet_name
from dimos_streams.common.process.threads import begin_thread
from dimos_streams.common.readable.plural import plural
from dimos_streams.common.tasks import end_tasks_silently
from dimos_streams.errors import DimosStreamsError, UnknownAgentError, UserError, suggest
from dimos_streams.operator.agents import SEVERAL
from dimos_streams.operator.known_names import ANSWER, CLI

if TYPE_CHECKING:
    from dimos_streams.client.http_gateway import HttpGateway
    from dimos_streams.tool_stream.event import ToolEvent

_HELP = """\
Whatever you type is said to the agent. Besides:
  /calls            list the open calls
  /cancel ID        cancel a call
  /now TEXT         say it before all that waits,
                    and cut the present answer
  /skills           list the skills
  /pause, /resume, /step [on|off|once|ID], /forget,
  /abort [rollback], /undo [COUNT]
                    as the commands of these names
  /approvals [ID]   list what waits for approval
  /approve ID [NAME=VALUE]…, /reject ID [REASON]
                    decide on one; ID@REVISION is
                    refused if it was changed since
  /quit             leave, as Ctrl-D; calls go on
Of an id its beginning is enough; Tab completes
commands and the ids of calls."""
"""What fits behind the time and the speaker in 80 columns."""
COMMANDS = {f"/{name}" for name in ("help", "calls", "cancel", "now", "skills", "quit", *CHAT_COMMANDS)}
"""The commands of a chat, as they are typed."""
_HOLDS, _FREES = ("/pause", "/step on"), ("/resume", "/step off", "/abort", "/abort rollback")
_HOW_TO_END = "Ctrl-D ends the chat, /cancel ID a call"


def run_chat(address: BridgeAddress, agent: str) -> int:
    """Chat until the person leaves or the pipe ends; return the exit code.

    Raises ``DimosStreamsError`` if nobody is there, and ``NoRunError`` if the run ends meanwhile.
    """
    return run_async(_chat(address, agent))


async def _chat(address: BridgeAddress, agent: str) -> int:
    async with open_gateway(address, ends_with_run=True) as gateway:
        skill = await _listener(gateway, agent)
        screen = PromptScreen() if sys.stdin.isatty() and sys.stdout.isatty() else PlainScreen()
        reporter = TextReporter(screen, "chat")

        def show(event: ToolEvent) -> None:
            reporter.tool_event(event)
            if left := mission_left(event):
                reporter.note(left)

        async with watching(gateway, show, after=await gateway.offset()) as watch:
            chat = _Chat(gateway, watch, reporter, skill, is_named=bool(agent))
            talk = chat.at_prompt(screen) if isinstance(screen, PromptScreen) else chat.from_pipe()
            return await _while_heard(watch, talk)


async def _while_heard(watch: EventWatch, talk: Coroutine[Any, Any, int]) -> int:
    """Return what a talk returns. Raises what ends the watch before: whoever types would not hear of it."""
    tasks = asyncio.ensure_future(talk), asyncio.ensure_future(watch.until(lambda: False))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            tasks[1].result()
        return tasks[0].result()
    finally:
        await end_tasks_silently(*tasks)


async def _listener(gateway: HttpGateway, to: str) -> str:
    """Return the ``say`` of the agent with whom one chats; of several it is empty: each line begins with a name then.

    Raises ``UnknownAgentError`` if nobody is there, or nobody of that name.
    """
    try:
        return await find_say(gateway, to)
    except UnknownAgentError as error:
        if to or not str(error).startswith(SEVERAL):
            raise
        return ""


class _Chat:
    def __init__(
        self, gateway: HttpGateway, watch: EventWatch, reporter: TextReporter, skill: str, *, is_named: bool
    ) -> None:
        self._gateway = gateway
        self._watch = watch
        self._reporter = reporter
        self._skill = skill
        self._is_named = is_named
        """True if all that is said goes to the agent of ``skill``, whatever name it begins with."""
        self._said: list[str] = []
        self._replied: dict[str, ToolEvent] = {}
        """The questions to which something was said, by the calls that go on with it."""
        self._code = DONE
        """The exit code: the worst of what could not be said or done."""
        self._held_by = ""
        """The command of this chat that keeps the agent from answering; empty if none does."""
        if not skill:
            self._note("several agents are here: begin what you say with the name of one, 'robot1: …'")

    async def at_prompt(self, screen: PromptScreen) -> int:
        """Say each line that is typed, until the person leaves. Return the exit code."""
        from prompt_toolkit.patch_stdout import patch_stdout

        from dimos_streams.cli.consoles.chat_completion import ChatCompleter

        screen.session.completer = ChatCompleter(COMMANDS, self._watch.open)
        loop = asyncio.get_running_loop()

        def on_signal(number: int) -> bool:
            # The terminal makes a signal of Ctrl-C while lines are printed above the prompt.
            if number == signal.SIGINT:
                loop.call_soon_threadsafe(self._note, _HOW_TO_END)
            return number == signal.SIGINT

        with patch_stdout(), signals.handle_with(on_signal):
            self._note("/help lists the commands, Ctrl-D ends")
            while True:
                try:
                    line = await screen.session.prompt_async(handle_sigint=False)
                except EOFError:
                    break
                except KeyboardInterrupt:
                    self._note(_HOW_TO_END)
                    continue
                if not await self._take(line):
                    break
            if self._watch.open:
                self._note(f"{plural(len(self._watch.open), 'call')} still open; `dimos-streams calls --open` lists")
        return DONE

    async def from_pipe(self) -> int:
        """Say each line when the one before is answered; at the end wait for all of it. Return the exit code.

        Between a ``/pause`` or ``/step on`` and what ends it nothing is waited for: it could not be answered, nor
        could what waits behind a pause of somebody else, or for a decision or an answer, which the next line
        may be.
        """
        async for line in _lines_of_stdin():
            if not await self._take(line):
                return self._code
            if self._said and not self._held_by:
                await self._watch.until(self._is_answered_or_held)
        if self._said and (self._held_by or waits_behind_pause(self._watch, self._said[-1])):
            self._note(f"what was said last may wait: the agent is held by {self._held_by or 'a pause'}")
            return max(self._code, FAILED)
        closes = [await self._watch.wait(call_id, "close") for call_id in self._said]
        return max(self._code, worst_of(closes))

    def _is_answered_or_held(self) -> bool:
        """Return whether what was said last is answered, or is held until an operator does something."""
        watch, last = self._watch, self._said[-1]
        newest = [watch.open[call_id] for call_id in self._said if call_id in watch.open]
        held = any(note_for_operators(event) and event is not self._replied.get(event.call_id) for event in newest)
        if held or waits_behind_pause(watch, last):
            return True
        # A reply is over at once, and who has asked may ask once more.
        said = {last, *(call_id for call_id in self._replied if call_id in watch.open)}
        return all(watch.has_reached(call_id, "answer") for call_id in said)

    async def _take(self, line: str) -> bool:
        """Do what a line asks for; return False if it asks to leave."""
        command, _, rest = line.strip().partition(" ")
        if command == "/quit":
            return False
        try:
            if command.startswith("/"):
                with agents_named_by("chat --agent NAME"):
                    await self._command(command, rest.strip())
            elif command:
                await self._say(line.strip())
        except DimosStreamsError as error:
            self._note(f"error: {error}")
            self._code = max(self._code, code_of_error(error))
        return True

    async def _say(self, text: str, **how: bool) -> None:
        with agents_named_by("begin with 'NAME: '"):
            name, text = ("", text) if self._is_named else await find_addressee(self._gateway, text)
            skill = await find_say(self._gateway, name) if name or not self._skill else self._skill
        questions = self._questions(skill)
        self._said.append(await self._gateway.call(skill, {"text": text, **how}, caller=CLI))
        self._replied |= questions

    def _questions(self, skill: str) -> dict[str, ToolEvent]:
        """The questions that wait for what is said next to the agent of a skill."""
        newest = [self._watch.open[call_id] for call_id in self._said if call_id in self._watch.open]
        return {
            event.call_id: event
            for event in newest
            if note_for_operators(event).endswith(ANSWER) and fleet_name(event.skill, event.robot) == skill
        }

    async def _command(self, command: str, rest: str) -> None:
        match command:
            case "/help":
                self._note(_HELP)
            case "/calls":
                views = await Declarations(self._gateway).without_looks(await self._gateway.calls(open_only=True))
                self._note("\n".join(table_lines(call_table(in_families(views))[1])) or "no open calls")
            case "/skills":
                skills = await self._gateway.skills()
                self._note("\n".join(f"{skill.name}({signature(skill.parameters)})" for skill in skills))
            case "/now" if rest:
                await self._say(rest, now=True)
            case "/now":
                raise UserError("/now needs a text, to be said before all that waits")
            case "/cancel" if rest:
                call = await find_call(self._gateway, rest)
                await self._gateway.cancel(call.call_id, "cancelled by the operator")
            case "/cancel":
                raise UserError("/cancel needs the id of a call; /calls lists them")
            case _ if command[1:] in CHAT_COMMANDS:
                typed = " ".join([command, *rest.split()])
                if typed in _HOLDS + _FREES:  # an agent that can't hold its robot is paused all the same
                    self._held_by = typed if typed in _HOLDS else ""
                self._note(await chat_command(self._gateway, self._skill, command[1:], rest.split()))
            case _:
                raise UserError(f"there is no command {command!r}{suggest(command, COMMANDS)} (/help lists them)")

    def _note(self, text: str) -> None:
        self._reporter.note(text)


async def _lines_of_stdin() -> AsyncIterator[str]:
    """Yield the lines of standard input, whatever bytes they have, read one ahead by a thread that may be left
    behind. Raises ``UserError`` if it can't be read."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | OSError | None] = asyncio.Queue()
    wanted = threading.Semaphore(1)

    def read() -> None:
        end = None
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody wants more lines
            try:
                for line in sys.stdin.buffer:  # as text, a single wrong byte would end it
                    wanted.acquire()
                    loop.call_soon_threadsafe(lines.put_nowait, line.decode(sys.stdin.encoding, "replace"))
            except OSError as error:
                end = error
            finally:
                loop.call_soon_threadsafe(lines.put_nowait, end)

    try:
        begin_thread(threading.Thread(target=read, name="stdin", daemon=True))
        while (line := await lines.get()) is not None:
            if isinstance(line, OSError):
                raise line
            yield line
            wanted.release()
    except OSError as error:
        raise UserError(f"standard input can't be read: {error.strerror}") from error
