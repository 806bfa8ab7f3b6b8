"""``/fleet/robots/{robot}/…``: what robots say to a hub. The protocol is in ``docs/fleet-protocol.md``."""

from __future__ import annotations

from typing import Annotated, TypeVar

from fastapi import FastAPI, Query, Request, Response
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.types import Send

from dimos_streams import __version__
from dimos_streams.common.invalid import first_problem
from dimos_streams.fleet.batches import Batch, Position, ShippedGap
from dimos_streams.fleet.commands import Answer
from dimos_streams.fleet.protocol import (
    JOURNAL_ID,
    MAX_ANSWER_BYTES,
    MAX_BATCH_BYTES,
    MAX_REPORT_BYTES,
    PROTOCOL,
    STREAM_ID,
    FleetMessage,
)
from dimos_streams.fleet.reports import Reported, RobotReport
from dimos_streams.hub.batches import NoEventError, robot_batch
from dimos_streams.hub.command_streams import CommandStream
from dimos_streams.hub.http import hub_kinds
from dimos_streams.hub.http.refusing import bounded_read, translate_refusals
from dimos_streams.hub.http.robot_names import RobotPath
from dimos_streams.hub.parts import HubParts
from dimos_streams.hub.storage.rows import Conflicting, NotNext, TakeAnswer
from dimos_streams.hub.threads import in_thread
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.events.event_response import EventResponse
from dimos_streams.serving.openapi import answers, refusals
from dimos_streams.serving.problems import ProblemError
from dimos_streams.serving.route import parsed_body

M = TypeVar("M", bound=FleetMessage)

_ALWAYS = (hub_kinds.FOREIGN_ROBOT, hub_kinds.HUB_UNAVAILABLE, problem_kinds.BAD_REQUEST)


def mount_robot_side(app: FastAPI, parts: HubParts) -> None:
    """Add the routes to an app."""
    _mount_events(app, parts)
    _mount_commands(app, parts)

    @app.post(
        "/fleet/robots/{robot}/reports",
        response_model=Reported,
        responses=refusals(*_ALWAYS, hub_kinds.FLEET_VERSION, takes_body=True),
    )
    async def report(robot: RobotPath, request: Request) -> Reported:
        body = _message(RobotReport, await request.body(), "report", MAX_REPORT_BYTES)
        parts.streams.hear(robot, body.sent_utime)
        skills = None if body.skills is None else to_json(body.skills).decode()
        plain = body.model_copy(update={"skills": None}).model_dump_json()
        with translate_refusals():
            known = await in_thread(
                parts.threads.others,
                lambda: parts.storage.robots.report(
                    robot, version=body.version, journal=body.journal, report=plain, skills=skills
                ),
            )
        parts.robots.forget()
        return Reported(version=__version__, wants_skills=not known)


def _mount_events(app: FastAPI, parts: HubParts) -> None:
    @app.get(
        "/fleet/robots/{robot}/position",
        responses=refusals(*_ALWAYS),
    )
    async def position(robot: RobotPath, journal: Annotated[str, Query(pattern=JOURNAL_ID)]) -> Position:
        async with bounded_read():
            stored = await in_thread(parts.threads.others, parts.storage.position, robot, journal)
        return Position(version=__version__, journal=journal, acknowledged=max(0, stored), wait_s=parts.intake.pace_s)

    @app.post(
        "/fleet/robots/{robot}/batches",
        response_model=Position,
        responses=refusals(
            *_ALWAYS,
            hub_kinds.FLEET_VERSION,
            hub_kinds.FLEET_POSITION,
            hub_kinds.FLEET_CONFLICT,
            hub_kinds.FLEET_ENTRY,
            takes_body=True,
        ),
    )
    async def batches(robot: RobotPath, request: Request) -> Position:
        batch = _batch(await request.body())
        parts.streams.hear(robot, batch.sent_utime)
        try:
            checked = robot_batch(robot, batch)
        except NoEventError as error:
            raise ProblemError(hub_kinds.FLEET_ENTRY, str(error), offset=error.offset) from error
        with translate_refusals():
            acknowledged = _acknowledged(await parts.intake.store(checked), batch.journal)
        return Position(
            version=__version__, journal=batch.journal, acknowledged=acknowledged, wait_s=parts.intake.pace_s
        )


def _acknowledged(answer: TakeAnswer, journal: str) -> int:
    """The offset up to which a journal is stored. Raises ``ProblemError`` for a batch that was not taken."""
    if isinstance(answer, NotNext):
        text = f"offset {answer.acknowledged + 1} of journal {journal!r} would be next"
        raise ProblemError(hub_kinds.FLEET_POSITION, text, acknowledged=answer.acknowledged)
    if isinstance(answer, Conflicting):
        text = (
            f"another event is stored at offset {answer.offset} of journal {journal!r}: what comes from there on"
            " belongs into a journal with an id of its own"
        )
        raise ProblemError(hub_kinds.FLEET_CONFLICT, text, offset=answer.offset)
    return answer.acknowledged


def _mount_commands(app: FastAPI, parts: HubParts) -> None:
    @app.get(
        "/fleet/robots/{robot}/commands",
        response_class=Response,
        response_model=None,
        responses=answers(
            200,
            "Server-sent events: `hello`, then a `command` whenever there is one.",
            {"type": "string"},
            media_type="text/event-stream",
        )
        | refusals(*_ALWAYS),
    )
    async def commands(
        robot: RobotPath,
        stream: Annotated[str, Query(pattern=STREAM_ID)],
        process: Annotated[str, Query(pattern=STREAM_ID)],
    ) -> Response:
        with translate_refusals():
            opened = await parts.streams.open(robot, stream, process)
        parts.robots.forget()
        return _Commands(parts, opened)

    @app.post(
        "/fleet/robots/{robot}/answers",
        status_code=204,
        response_class=Response,
        response_model=None,
        responses=refusals(*_ALWAYS, hub_kinds.FLEET_VERSION, takes_body=True),
    )
    async def answer(robot: RobotPath, request: Request) -> Response:
        body = _message(Answer, await request.body(), "answer", MAX_ANSWER_BYTES)
        with translate_refusals():
            await in_thread(parts.threads.orders, parts.storage.commands.answer, robot, body)
        parts.asker.wake()
        return Response(status_code=204)


class _Commands(EventResponse):
    """A stream of commands, which is closed when its connection is over."""

    def __init__(self, parts: HubParts, stream: CommandStream) -> None:
        self._parts, self._stream = parts, stream
        super().__init__(stream.frames(parts.streams.hub))

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            await self._parts.streams.close(self._stream)


def _message(model: type[M], body: bytes, what: str, most: int) -> M:
    """A message of a robot, of ``most`` bytes. Raises ``ProblemError`` that calls it ``what``."""
    if len(body) > most:
        text = f"the {what} has {len(body)} bytes, one may have {most}: send less at once"
        raise ProblemError(problem_kinds.TOO_LARGE, text)
    fields = parsed_body(body)
    # The version first: what else there is follows from it.
    spoken = fields.get("protocol") if isinstance(fields, dict) else None
    if isinstance(spoken, int) and spoken != PROTOCOL:
        version = fields.get("version")
        robot = f"the robot (version {version[:50]!r})" if isinstance(version, str) else "the robot"
        text = (
            f"{robot} speaks version {spoken} of the protocol, this hub (version {__version__!r}) version {PROTOCOL};"
            " upgrade the hub first, then the robots"
        )
        raise ProblemError(hub_kinds.FLEET_VERSION, text)
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise ProblemError(problem_kinds.BAD_REQUEST, first_problem(error, "the body")) from error


def _batch(body: bytes) -> Batch:
    """The batch of a body. Raises ``ProblemError``, with the offset where a single entry is to blame."""
    batch = _message(Batch, body, "batch", MAX_BATCH_BYTES)
    upto = 0
    for entry in batch.entries:
        if upto and entry.offset != upto + 1:
            text = f"offset {entry.offset} follows {upto}: a batch has consecutive offsets"
            raise ProblemError(problem_kinds.BAD_REQUEST, text)
        upto = entry.to_offset if isinstance(entry, ShippedGap) else entry.offset
        if upto < entry.offset:
            raise ProblemError(problem_kinds.BAD_REQUEST, f"a gap of offsets {entry.offset} to {upto} is none")
    return batch
