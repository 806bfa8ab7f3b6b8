"""The description of ``/mcp`` in ``/openapi.json``: JSON-RPC, whose form the framework does not see."""

from __future__ import annotations

from typing import Any

from dimos_streams.bridge.mcp.messages import Incoming
from dimos_streams.serving.openapi import Described, refusals

SESSION = "Mcp-Session-Id"
VERSION = "MCP-Protocol-Version"

_ID = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}
_ERROR = {
    "type": "object",
    "required": ["jsonrpc", "id", "error"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "id": _ID,
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
        },
    },
}
_RESULT = {
    "type": "object",
    "required": ["jsonrpc", "id", "result"],
    "properties": {"jsonrpc": {"const": "2.0"}, "id": _ID, "result": {"type": "object"}},
}
_SAID = {
    "type": "object",
    "required": ["jsonrpc", "method"],
    "properties": {
        "jsonrpc": {"const": "2.0"},
        "method": {"type": "string", "description": "Such as `notifications/progress`."},
        "params": {"type": "object"},
    },
}
_MESSAGES = {"text/event-stream": {"schema": {"anyOf": [_RESULT, _ERROR, _SAID]}}}
"""What one event of such a stream has as its data."""


def _header(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": text, "schema": {"type": "string"}}


_HEADERS = [
    _header(
        SESSION,
        "The session, which the answer to `initialize` names. All else needs it but `tools/list` and `tools/call`.",
    ),
    _header(VERSION, "The version of the protocol that both sides agreed on."),
]


def _refusals(*statuses: int, takes_body: bool = False) -> Described:
    """The problems of all routes, and errors of JSON-RPC with some statuses."""
    found = refusals(takes_body=takes_body)
    for status in statuses:
        response = found.setdefault(status, {"description": "", "content": {}})
        response["description"] = f"{response['description']} Or an error of JSON-RPC.".strip()
        response["content"]["application/json"] = {"schema": _ERROR}
    return found


POST: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The answer; to a call of a skill as server-sent events, for clients that read them, each"
            " with a message as its `data`, of which the answer comes last.",
            "content": {"application/json": {"schema": {"anyOf": [_RESULT, _ERROR]}}, **_MESSAGES},
            "headers": {SESSION: {"description": "Of the answer to `initialize`.", "schema": {"type": "string"}}},
        },
        202: {"description": "A notification or a response was taken."},
        **_refusals(400, 404, 503, takes_body=True),
    },
    "openapi_extra": {
        "parameters": _HEADERS,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": Incoming.model_json_schema()}},
        },
    },
}
GET: dict[str, Any] = {
    "responses": {
        200: {"description": "Server-sent events, each with a message as its `data`.", "content": _MESSAGES},
        **_refusals(400, 404, 406, 410, 503),
    },
    "openapi_extra": {
        "parameters": [*_HEADERS, _header("Last-Event-ID", "The id of a stream that was cut: its answer is wanted.")]
    },
}
DELETE: dict[str, Any] = {
    "responses": {204: {"description": "The session has ended."}, **_refusals(400, 404, 503)},
    "openapi_extra": {"parameters": _HEADERS},
}
