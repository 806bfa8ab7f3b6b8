"""A server that answers POST, and refuses the event stream."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from dimos_streams.dimos_skills.module import DimosSkills
from dimos_streams.testing import ModuleHarness
from tests.helpers import until


class _PostOnly(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(405)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_error(405)

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_without_an_event_stream_is_told_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_tools(_: DimosSkills) -> None:
        pass

    monkeypatch.setattr(DimosSkills, "_list_tools", no_tools)

    async def scenario(url: str) -> None:
        async with ModuleHarness(DimosSkills, {"url": url}) as harness:
            await until(lambda: "event stream" in harness.module.health)
            assert "a server that answers GET there with an event stream is needed" in harness.module.health

    with HTTPServer(("127.0.0.1", 0), _PostOnly) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            asyncio.run(scenario(f"http://127.0.0.1:{server.server_address[1]}/mcp"))
        finally:
            server.shutdown()
