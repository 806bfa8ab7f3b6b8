"""JSON-RPC 2.0, as far as the Model Context Protocol uses it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

from dimos_streams.common.secrets import redacted

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)

MAX_ID = 200
_NUMBERS_END = 2**63
Id = Annotated[str, Field(max_length=MAX_ID)] | Annotated[int, Field(ge=-_NUMBERS_END, lt=_NUMBERS_END)]


class Incoming(BaseModel):
    """A request (it has an id and a method), a notification (no id) or a response (no method) of a client."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    jsonrpc: Literal["2.0"]
    id: Id | SkipJsonSchema[None] = None
    method: Annotated[str, Field(max_length=200)] | None = None
    params: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _is_a_message(cls, value: object) -> object:
        if not isinstance(value, dict):
            raise ValueError("a message is one JSON object; the versions that are spoken here have no batches")
        if "id" in value and not is_id(value["id"]):
            raise ValueError(
                f"the id of a request is a whole number or a text of up to {MAX_ID} characters; numbers have 64 bits"
            )
        if value.get("method") is None and not value.keys() & {"result", "error"}:
            raise ValueError("the method is missing")
        return value

    @property
    def wants_no_session(self) -> bool:
        """True if it can be a request of a client that keeps no session. dimos' ``McpClient`` is one: it greets
        without a word about itself, lists tools and calls them."""
        bare_greeting = self.method == "initialize" and "params" not in self.model_fields_set
        return self.id is not None and (bare_greeting or self.method in ("tools/list", "tools/call"))

    @property
    def progress_token(self) -> str | int | None:
        """The token by which the client wants progress to be reported, None if it wants none."""
        meta = self.params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        return token if isinstance(token, str | int) and not isinstance(token, bool) else None


def is_id(value: object) -> TypeGuard[Id]:
    """Return whether a value may be the id of a request."""
    if isinstance(value, str):
        return len(value) <= MAX_ID
    return isinstance(value, int) and not isinstance(value, bool) and -_NUMBERS_END <= value < _NUMBERS_END


class ClientInfo(BaseModel):
    """A client's description of itself, as far as it is used."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    name: str


class Greeting(BaseModel):
    """The parameters of ``initialize``."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, alias_generator=to_camel)

    protocol_version: str
    capabilities: dict[str, Any]
    client_info: ClientInfo


class RpcError(Exception):
    """Raised for a request that can't be answered with a result."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        super().__init__(text)


def result(id: Id | None, value: dict[str, Any]) -> dict[str, Any]:
    """The response to a request."""
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(id: Id | None, code: int, text: str) -> dict[str, Any]:
    """The response to a request that went wrong."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": redacted(text)}}


def notification(method: str, **params: Any) -> dict[str, Any]:
    """A message that wants no response."""
    return {"jsonrpc": "2.0", "method": method, "params": params}
