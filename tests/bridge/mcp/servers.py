"""MCP servers of a scene's bridge, without their transport."""

from __future__ import annotations

from dimos_streams.bridge.mcp.calls import BrokerCalls, McpCalls
from dimos_streams.bridge.mcp.messages import Incoming
from dimos_streams.bridge.mcp.server import McpServer
from dimos_streams.bridge.mcp.sessions import Session
from tests.bridge.mcp.test_mcp import INITIALIZE
from tests.bridge.scene import Scene


def mcp_server(made: Scene, calls: McpCalls | None = None) -> McpServer:
    """A server as each process of the bridge has one, which knows nothing of those before."""
    return McpServer(calls or BrokerCalls(made.broker), made.broker.ledger.broadcast)


def begun_again(made: Scene, session: Session) -> tuple[McpServer, Session]:
    """A server after one that has ended, and a session that a client had there."""
    server = mcp_server(made)
    same = server.sessions.get(session.id)
    assert same is not None
    return server, same


async def with_session(made: Scene, calls: McpCalls | None = None) -> tuple[McpServer, Session]:
    """A server, and a client's session there."""
    server = mcp_server(made, calls)
    session, _ = await server.initialize(Incoming.model_validate(INITIALIZE))
    return server, session
