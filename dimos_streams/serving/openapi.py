"""``/openapi.json``: additions that the framework can't know of the answers, so that clients can be made of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import FastAPI

from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problem_kinds import KINDS, ProblemKind
from dimos_streams.serving.problems import HEADERS, MEDIA_TYPE
from dimos_streams.tool_stream.event import EVENT_TYPES, OUTCOMES

Described = dict[int | str, dict[str, Any]]
"""Responses by their status."""

_ALWAYS = (
    problem_kinds.BAD_HTTP,
    problem_kinds.TOKEN_NEEDED,
    problem_kinds.FOREIGN_HOST,
    problem_kinds.FOREIGN_ORIGIN,
    problem_kinds.INTERNAL_ERROR,
    problem_kinds.TOO_MANY_CONNECTIONS,
)
_WITH_BODY = (
    problem_kinds.BAD_JSON,
    problem_kinds.WATCH_ONLY,
    problem_kinds.TOO_SLOW,
    problem_kinds.TOO_LARGE,
    problem_kinds.NOT_DECLARED_JSON,
    problem_kinds.TOO_MANY_BODIES,
)
_HEADERS = {status: {header.name: header.meaning} for status, header in HEADERS.items()}
_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_EVENT_FIELDS = {
    "utime": {
        "type": "integer",
        "description": "When it happened, µs since the Unix epoch, by its module's clock.",
    },
    "call_id": {"type": "string", "description": "Empty for a gap that concerns several calls."},
    "seq": {"type": "integer", "description": "1, 2, 3 … within the call; `open` is 1."},
    "type": {"type": "string", "enum": [*sorted(EVENT_TYPES), "gap"]},
    "module": {"type": "string"},
    "skill": {"type": "string"},
    "caller": {"type": "string"},
    "text": {"type": "string", "description": "For people and models."},
    "data": {
        "type": "object",
        "description": "Of `open`: arguments, parent, resources, on_loss. Of `close`: outcome "
        f"({', '.join(OUTCOMES)}), and result or error. Of `gap`: from_seq and to_seq, or from_offset and "
        "to_offset. Of others: what the skill gives, under names of its own.",
    },
}
EVENT = {"$ref": "#/components/schemas/ToolStreamEvent"}
_EVENT = {
    "title": "ToolStreamEvent",
    "description": "One event of a call: the `data` of a server-sent event of type `tool_stream`.",
    "type": "object",
    "required": [*_EVENT_FIELDS],
    "additionalProperties": False,
}
_ROBOT = {"type": "string", "description": "The robot that it is from; missing in a gap of the hub's own sequence."}
_TOKEN = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "query": {"type": "apiKey", "in": "query", "name": "token", "description": "To read only."},
}
_MAX_INT64 = 2**63 - 1
_OTHERWISE = (
    "Any other refusal, such as 404 not-found where nothing is, and 405 method-not-allowed, whose Allow header has "
    "the methods that are possible."
)


def refusals(*of: ProblemKind, takes_body: bool = False) -> Described:
    """The problems that a route answers with: its own, and those of all routes."""
    every = dict.fromkeys([*of, *_ALWAYS, *(_WITH_BODY if takes_body else ())])
    found: Described = {
        status: {**_answer(each for each in every if each.status == status), **_headers(_HEADERS.get(status, {}))}
        for status in sorted({each.status for each in every})
    }
    return {**found, "default": {"description": _OTHERWISE, **_content(_PROBLEM), **_headers({"Allow": "Of 405."})}}


def answers(status: int, description: str, schema: Any = None, *, media_type: str = "", **headers: str) -> Described:
    """A route's answer if all is well, as far as its signature lacks it. ``_`` stands for ``-``."""
    content = {} if schema is None else _content(schema, media_type)
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return {status: {"description": description, **content, **_headers(named)}}


def event_stream(id: str, data: str) -> Described:
    """The answer of a route that streams the events of calls. The schema is that of one event's ``data``: the whole
    text has no end, and generators that read such streams have each event checked by it."""
    text = (
        "Server-sent events of type `tool_stream` for as long as the client reads, one of which is described:"
        f" `id` is {id}, `data` a JSON object with {data}, `#/components/schemas/ToolStreamEvent`."
    )
    return answers(200, text, EVENT, media_type="text/event-stream")


def describe(app: FastAPI, every: Sequence[ProblemKind] = KINDS, *, of_hub: bool = False) -> None:
    """Complete the document of an app when it is first asked for; ``every`` are its kinds of problems. Events
    ``of_hub`` name their robots."""
    plain = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            document["components"]["schemas"]["Problem"] = _problem_schema(every)
            document["components"]["schemas"]["ToolStreamEvent"] = _event_schema(of_hub)
            document["components"]["securitySchemes"] = _TOKEN
            document["security"] = [{}, *({name: []} for name in _TOKEN)]
            for operations in document["paths"].values():
                for operation in operations.values():
                    for parameter in operation.get("parameters", ()):
                        parameter["schema"] = _without_null(parameter["schema"])
                if "get" in operations:
                    operations["head"] = _head(operations["get"])
            app.openapi_schema = _wide(document)
        return plain()

    app.openapi = complete  # type: ignore[method-assign]


def _event_schema(of_hub: bool) -> dict[str, Any]:
    return {**_EVENT, "properties": {**_EVENT_FIELDS, **({"robot": _ROBOT} if of_hub else {})}}


def _problem_schema(every: Sequence[ProblemKind]) -> dict[str, Any]:
    return {
        "title": "Problem",
        "description": "RFC 9457: `type` is for programs, `detail` for people; it names the value and what is valid.",
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string", "enum": [kind.type for kind in every]},
            "title": {"type": "string", "description": "Always the same for a type."},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "errors": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "What is wrong, by where it is: of bad-request, bad-arguments, bad-settings.",
            },
            "skill": {
                "type": "string",
                "description": "Its name, of unknown-skill, bad-arguments and key-used.",
            },
            "call_id": {"type": "string", "description": "The call's id, of unknown-call and key-used."},
            "state": {"type": "string", "description": "The state of that call, of key-used."},
            "holder": {"type": "string", "description": "The call that is in the way, of call-rejected."},
            "resource": {
                "type": "string",
                "description": "What that call holds, of call-rejected; no duplicate has it.",
            },
            "current": {"description": "What holds instead of what was decided on or changed, of conflict."},
            "error_id": {"type": "string", "description": "Leads to the log's record, of internal-error."},
        },
    }


def _answer(of: Iterable[ProblemKind]) -> dict[str, Any]:
    texts = [f"`{kind.name}`: {kind.title}." for kind in of]
    return {"description": " ".join(texts), **_content(_PROBLEM)}


def _content(schema: Any, media_type: str = MEDIA_TYPE) -> dict[str, Any]:
    return {"content": {media_type: {"schema": schema}}}


def _headers(texts: dict[str, str]) -> dict[str, Any]:
    described = {name: {"description": text, "schema": {"type": "string"}} for name, text in texts.items()}
    return {"headers": described} if described else {}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of an optional parameter without null, because a URL or a header has none."""
    others = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(others) != 1:
        return schema
    return {**{name: value for name, value in schema.items() if name != "anyOf"}, **others[0]}


def _wide(document: Any) -> Any:
    """The document with whole numbers of 64 bits: generators of clients in Go, Java, C# and others take those without
    a format for numbers of 32, in which no time in µs has room. The framework has made floats of their bounds."""
    if isinstance(document, list):
        return [_wide(each) for each in document]
    if not isinstance(document, dict):
        return document
    wide = {name: _wide(value) for name, value in document.items()}
    if wide.get("type") != "integer":
        return wide
    bounds = {name: min(int(wide[name]), _MAX_INT64) for name in ("minimum", "maximum") if name in wide}
    return {**wide, **bounds, "format": "int64"}


def _head(get: dict[str, Any]) -> dict[str, Any]:
    """The operation HEAD for a GET: the same without bodies."""
    responses = {
        status: {name: value for name, value in response.items() if name != "content"}
        for status, response in get["responses"].items()
    }
    return {**get, "operationId": f"{get['operationId']}_head", "responses": responses}
