"""Commands of a hub: each is carried out once, by the bridge's own door, or not at all if it comes too late."""

from __future__ import annotations

import asyncio
import hashlib
import logging

from dimos_streams import __version__, clock
from dimos_streams.bridge.fleet.answers import AnswerBox
from dimos_streams.bridge.fleet.attempts import FAILURES, Attempts
from dimos_streams.bridge.fleet.command_notes import MAX_OWED, CommandNotes
from dimos_streams.bridge.fleet.door import Door, DoorReply, begins_call, refusal, too_large
from dimos_streams.bridge.fleet.hub_requests import HubRefusalError, HubUnreachableError
from dimos_streams.bridge.fleet.link_context import LinkContext
from dimos_streams.client.iterators import closing
from dimos_streams.common.json.writing import json_text
from dimos_streams.common.names import MAX_NAME
from dimos_streams.common.tasks import end_tasks_silently, report_defect
from dimos_streams.fleet.commands import Answer, Command, Hello, Outcome, is_last_word, two_robots
from dimos_streams.fleet.lanes import MOST_AT_ONCE, Lane, lane_of
from dimos_streams.fleet.protocol import CLOCK_MARGIN_S, COMMANDS_AGE_S, MAX_ANSWER_BYTES, PROTOCOL
from dimos_streams.serving import problem_kinds

_SLOW_START_S = 2.0
"""A stream that takes longer than this, in seconds, to begin is asked for again at once: each command on it would
lose that time."""
_SLOW_STARTS = 3
"""The stream that is so slow for this time in a row is kept all the same: the link may be no faster."""
_AGE_GRACE_S = 30.0
_LONGER_ID = 16
"""Bytes by which an answer may grow when another command of the same key gets it."""
_PART = "commands"
_LATE = "the command came too late, and was not carried out"
_TOO_MANY = "the robot has too many commands already; this one was not carried out"
_INTERRUPTED = "the bridge ended while it carried this out: whether it did is not known, and it is not done again"
_PERHAPS = (
    "the bridge ended while it carried this out: whether the call began is not known; the same request with the same"
    " idempotency key asks again"
)
_OTHER_RUN = (
    "another run of this robot took this before: whether the call began then is not known, and it is not begun again;"
    " what is still wanted is to be asked for with another idempotency key"
)

_logger = logging.getLogger(__name__)


class CommandDesk:
    """Holds the stream of commands, and carries them out. Use from the loop only."""

    def __init__(self, link: LinkContext, door: Door, notes: CommandNotes, answers: AnswerBox) -> None:
        """``notes`` must be restored."""
        self._link = link
        self._door = door
        self._notes = notes
        self._answers = answers
        self._attempts = Attempts(link, _PART, initial_s=0.2, longest_s=5.0)
        self._tasks: dict[asyncio.Task[None], Lane] = {}
        """The tasks that carry commands out, with the lanes of the commands."""
        self._began_slowly = False
        self._waiting: dict[str, set[int]] = {}
        """The ids of all commands with the same key, by the keys of the commands that are being carried out."""
        self._slow_starts = 0
        """Streams in a row that began too slowly."""
        self.connected = False
        """True if the hub's stream of commands is there."""
        self.turns = 0
        """The number of times that it has begun or ended."""
        self.hub = ""
        """The name of the hub's process that has greeted last; empty before any has."""

    async def run(self) -> None:
        """Take commands until cancelled; calls that have begun then go on."""
        try:
            while True:
                await self._hold_stream()
        finally:
            tasks = list(self._tasks)
            await end_tasks_silently(*tasks)

    async def _hold_stream(self) -> None:
        """Hold one stream of commands, and pause after it."""
        try:
            # Before the request is sent: the moment from which the hub counts is never earlier than this one.
            base = clock.steady()
            async with asyncio.timeout(COMMANDS_AGE_S + _AGE_GRACE_S), closing(self._link.hub.commands()) as messages:
                async for message in messages:
                    if not self._take(message, base):
                        return
        except TimeoutError:
            return
        except FAILURES as error:
            # That a stream ends is nothing, if there is another one then.
            quietly = self.connected and isinstance(error, HubUnreachableError)
            self.connected = False
            await self._attempts.pause_after(error, quietly=quietly)
        finally:
            self.connected = False
            self.turns += 1

    def _take(self, message: Hello | Command, base: float) -> bool:
        """Take a message of the stream; return whether the stream is to go on. Raises ``HubRefusalError``."""
        if isinstance(message, Command):
            return self._begin(message, base + message.expires_at_s - CLOCK_MARGIN_S) or not self._began_slowly
        if message.protocol != PROTOCOL:
            raise HubRefusalError(
                f"it speaks protocol {message.protocol} (version {message.version}), this robot {PROTOCOL} (version"
                f" {__version__})"
            )
        self.hub = message.hub
        self.turns += 1
        if message.doubled:
            # Kept for stops. No attempt has succeeded: each robot waits longer until it asks again.
            self._link.troubles.begin(_PART, two_robots(message.robot))
            self.connected = True
        else:
            self.connected = self._begins_well(clock.steady() - base)
        return self.connected

    def _begins_well(self, took_s: float) -> bool:
        """Return whether a stream is kept that took ``took_s`` seconds to begin."""
        self._began_slowly = took_s > _SLOW_START_S
        if not self._began_slowly:
            self._slow_starts = 0
            self._attempts.reset()
            return True
        self._link.troubles.begin(_PART, f"its stream of commands took {took_s:.1f} s to begin")
        self._slow_starts += 1
        return self._slow_starts >= _SLOW_STARTS

    def _begin(self, command: Command, begin_by: float) -> bool:
        """Carry out a command in a task, unless it was carried out before: then it gets the answer that there is.
        Return False for one that came too late."""
        if (waiting := self._waiting.get(command.key)) is not None:
            if len(waiting) < MAX_OWED:  # all are answered at once; the hub sends again what is not
                waiting.add(command.id)
            return True
        is_late = clock.steady() > begin_by
        noted = self._notes.get(command.key)
        if (before := self._notes.answer_to(command.key, command.id)) is not None:
            self._note(command, before)
        elif self._notes.is_of_earlier_run(call_of(command)):
            # This run's bridge does not know the call by its key.
            refused = _answer(command, refusal(problem_kinds.CALL_REJECTED, _OTHER_RUN, refused=False))
            answer = self._notes.earlier_answer(command.key) or refused
            self._answers.put(answer.model_copy(update={"id": command.id}))
        elif noted is not None and noted.answer is None and (is_late or not begins_call(command)):
            why = _PERHAPS if begins_call(command) else _INTERRUPTED
            self._note(command, _answer(command, refusal(problem_kinds.CALL_REJECTED, why, refused=False)))
        elif is_late:
            self._answers.put(_answer(command, refusal(problem_kinds.TOO_SLOW, _LATE), "expired"))
            return False
        elif not self._has_room(command) or not self._is_noted(command):
            self._answers.put(_answer(command, refusal(problem_kinds.TOO_MANY_BODIES, _TOO_MANY)))
        else:
            self._waiting[command.key] = {command.id}
            task = asyncio.get_running_loop().create_task(
                self._carry_out(command, begin_by), name=f"hub command {command.id}"
            )
            self._tasks[task] = _lane(command)
            task.add_done_callback(self._tasks.pop)
            task.add_done_callback(report_defect)
        return True

    def _is_noted(self, command: Command) -> bool:
        """Note a command that must not be carried out twice; return False if there are too many for that."""
        return not changes(command) or self._notes.begin(command.key, call_of(command), _lane(command))

    def _has_room(self, command: Command) -> bool:
        lane = _lane(command)
        return sum(each == lane for each in self._tasks.values()) < MOST_AT_ONCE[lane]

    async def _carry_out(self, command: Command, begin_by: float) -> None:
        _logger.info("%s (%s) by the hub: %s %s", command.asked_by, command.role, command.method, command.path)
        try:
            reply = await self._door.enter(command, begin_by, _call_key(command.key))
        except Exception:
            # The app answers what goes wrong in it; this is a defect of the door, and must not end the desk.
            _logger.exception("command %d of the hub has failed", command.id)
            reply = refusal(problem_kinds.INTERNAL_ERROR, "the bridge has failed; its log says how", refused=False)
        finally:
            waiting = self._waiting.pop(command.key)
        for command_id in sorted(waiting):
            asked = command.model_copy(update={"id": command_id})
            answer = _answer(asked, reply)
            if changes(asked):
                self._note(asked, answer)
            else:
                self._answers.put(answer)

    def _note(self, command: Command, answer: Answer) -> None:
        """Answer a command, and remember the answer."""
        # What begins no call has no other authority than the notes; the bridge knows calls by their keys itself.
        is_settled = answer.outcome == "answered"
        if begins_call(command):
            is_settled = is_last_word(answer.outcome, answer.status, answer.body)
        answer = answer.model_copy(update={"id": command.id})
        answer = self._notes.note_answer(command.key, answer, settled=is_settled)
        self._answers.put(answer, command.key)


def _lane(command: Command) -> Lane:
    return lane_of(command.method, command.path, command.role)


def changes(command: Command) -> bool:
    """Return whether a command must not be carried out twice."""
    return command.method != "GET"


def _answer(command: Command, reply: DoorReply, outcome: Outcome | None = None) -> Answer:
    outcome = outcome or ("refused" if reply.refused else "answered")
    answer = Answer.model_validate(
        {"id": command.id, "outcome": outcome, "status": reply.status, "headers": reply.headers, "body": reply.body}
    )
    size = len(answer.model_dump_json().encode())
    return answer if size <= MAX_ANSWER_BYTES - _LONGER_ID else _answer(command, too_large(size))


def call_of(command: Command) -> str:
    """Return what names the call that a command begins: a hash of its caller and its idempotency key; empty if it
    begins none. Commands that wait otherwise for one call have keys of their own."""
    if not begins_call(command):
        return ""
    body = command.body or {}
    named = [body.get("caller"), body.get("idempotency_key") or _call_key(command.key)]
    return hashlib.sha256(json_text(named).encode()).hexdigest()


def _call_key(key: str) -> str:
    """The idempotency key of a call that a command begins."""
    name = f"hub/{key}"
    if len(name) <= MAX_NAME and name.isprintable():
        return name
    return f"hub/{hashlib.sha256(key.encode()).hexdigest()}"
