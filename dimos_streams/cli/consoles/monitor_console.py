"""A client of ``WS /monitor``, and its messages as lines for people."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from pydantic import TypeAdapter, ValidationError

from dimos_streams.cli.bridge_client.answers import HEALTH
from dimos_streams.cli.bridge_client.certificates import own_context
from dimos_streams.cli.bridge_client.connection import BridgeAddress, BridgeUnreachableError, open_gateway
from dimos_streams.cli.terminal.approval_text import details
from dimos_streams.cli.terminal.output import write, write_json
from dimos_streams.client.http_session import MAX_ANSWER, why
from dimos_streams.common.invalid import first_problem
from dimos_streams.common.json.reading import parse_json
from dimos_streams.common.readable.plural import plural
from dimos_streams.common.readable.shortening import shortened
from dimos_streams.errors import UserError
from dimos_streams.operator.agents import agents_offered, choose_agent
from dimos_streams.operator.holding import gate_state
from dimos_streams.operator.messages.agent import ApprovalView
from dimos_streams.operator.messages.hold import HoldView
from dimos_streams.operator.messages.server import ServerMessage

_MAX_DATA = 120
_MESSAGE: TypeAdapter[ServerMessage] = TypeAdapter(ServerMessage)


async def watch(address: BridgeAddress, agent: str, *, as_json: bool) -> None:
    """Show messages until the bridge ends. Raises ``BridgeUnreachableError`` if there is none, ``UserError`` for a
    hub, and ``UnknownAgentError`` for a name that no agent has."""
    if (await address.get("/healthz", HEALTH)).is_hub:
        raise UserError(
            f"{address.url} is a fleet's hub, which has no monitor: watch a robot at its own bridge, by"
            " `monitor --url BRIDGE` where that is reached; at the hub `calls` lists the calls of all robots"
        )
    if agent:
        async with open_gateway(address) as gateway:
            agent = choose_agent(agents_offered(await gateway.skills()), agent).name
    lines = Lines()
    async with contextlib.aclosing(_messages(address, agent)) as messages:
        async for message in messages:
            known = _known(message, address)
            if as_json:
                write_json(message)
                continue
            for line in lines.of(known):
                write(line)
    raise BridgeUnreachableError(f"the bridge at {address.url} has ended")


async def _messages(address: BridgeAddress, agent: str) -> AsyncGenerator[Any, None]:
    """Yield the messages of a bridge's monitor until it ends. Raises ``BridgeUnreachableError``."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus, WebSocketException

    from dimos_streams.common.http.bearer import bearer_headers

    class StraightConnect(connect):
        """Follows no redirection, which could lead the token elsewhere."""

        def process_redirect(self, exc: Exception) -> Exception:
            return exc

    query = f"?{urlencode({'agent': agent})}" if agent else ""
    url = f"{address.url.replace('http', 'ws', 1)}/monitor{query}"
    headers = bearer_headers(address.sent_token())
    connecting = StraightConnect(
        url,
        additional_headers=headers,
        proxy=None,
        ssl=own_context(url),
        compression=None,  # what is packed small may be large without end
        max_size=MAX_ANSWER,
        max_queue=1,
    )
    try:
        async with connecting as socket:
            async for text in socket:
                yield parse_json(text)
    except InvalidStatus as error:
        raise BridgeUnreachableError(f"the bridge at {address.url} refuses to be watched: {error}") from error
    except (OSError, WebSocketException) as error:
        raise BridgeUnreachableError(f"the bridge at {address.url} has ended the connection: {why(error)}") from error
    except ValueError as error:
        raise _no_bridge(address, str(error)) from error


def _known(message: Any, address: BridgeAddress) -> dict[str, Any]:
    """Return what is known of a message: a newer bridge's may have more fields, or be of a type of which nothing is
    known. Raises ``BridgeUnreachableError`` for what is no bridge's."""
    try:
        return _MESSAGE.validate_python(message, extra="ignore").model_dump()
    except ValidationError as error:
        if error.errors()[0]["type"] == "union_tag_invalid":
            return {"type": ""}
        raise _no_bridge(address, first_problem(error, "its message")) from error


def _no_bridge(address: BridgeAddress, problem: str) -> BridgeUnreachableError:
    return BridgeUnreachableError(f"what answers at {address.url} is no bridge: WS /monitor: {problem}")


class Lines:
    """The lines of what is new in each message."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, str]] = {}

    def of(self, message: Mapping[str, Any]) -> Iterator[str]:
        """Return the lines of a message."""
        match message["type"]:
            case "event":
                event = message["event"]
                yield f"{event['agent']}  {event['kind']}  {_brief(event['data'])}".rstrip()
            case "call":
                event = message["event"]
                what = event["data"].get("outcome") or event["type"]
                yield f"{event['skill']} [{event['call_id']}]  {what}  {_one_line(event['text'])}"
            case "gap":
                yield f"{message['lost']} messages were lost"
            case "snapshot":
                yield from self._state(message["snapshot"])
            case "change":
                yield from self._state(message["change"])

    def _state(self, state: Mapping[str, Any]) -> Iterator[str]:
        agents, modules = state.get("agents"), state.get("modules")
        if agents is not None:
            yield from self._changed("agent", {name: _agent(view) for name, view in agents.items()})
            waiting = [view for agent in agents.values() for view in agent["approvals"]]
            yield from self._changed("approval", dict(map(_approval, waiting)))
        if modules is not None:
            yield from self._changed("module", {module["name"]: _module(module) for module in modules})

    def _changed(self, what: str, now: dict[str, str]) -> Iterator[str]:
        before, self._seen[what] = self._seen.get(what, {}), now
        for name, text in now.items():
            if before.get(name) != text:
                yield f"{what} {name}: {text}"


def _agent(view: Mapping[str, Any]) -> str:
    mode = "" if view["mode"] == "running" else f", {view['mode']}"
    if view.get("paused_for"):
        mode = f"{mode} ({view['paused_for']})"
    if view.get("hold") is not None:
        mode = f"{mode}, {HoldView.model_validate(view['hold'])}"
    if view.get("retry") is not None:
        mode = f"{mode}, its model fails: attempt {view['retry']['attempt']} of {view['retry']['attempts']}"
    missions, calls = plural(len(view["missions"]), "mission"), plural(len(view["calls"]), "call")
    return f"{view['state']}{mode} ({missions}, {calls}, {view['model']})"


def _module(module: Mapping[str, Any]) -> str:
    gate = gate_state(module.get("state") or {})
    return f"{module['health']}, {gate}" if gate is not None else str(module["health"])


def _approval(fields: Mapping[str, Any]) -> tuple[str, str]:
    view = ApprovalView.model_validate(fields)
    arguments = "; ".join(details(view)) or _brief(view.arguments)
    return view.reference, f"{view.agent} asks for {view.skill}({arguments})  {view.reason}".rstrip()


def _brief(data: Mapping[str, Any]) -> str:
    return shortened(", ".join(f"{name}={json.dumps(v, ensure_ascii=False)}" for name, v in data.items()), _MAX_DATA)


def _one_line(text: str) -> str:
    return shortened(" ".join(text.split()), _MAX_DATA)
