"""A recording's ``/openapi.json`` against what is sent: answers and refusals are those that are declared."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import requests

from tests.bridge.http.test_openapi import Document
from tests.recording.logs import START, write_log
from tests.viewer.test_serving import WITHIN_S, served

pytestmark = pytest.mark.feature("I3")


def test_every_answer_is_declared(tmp_path: Path) -> None:
    def ask(url: str) -> None:
        document = Document(requests.get(f"{url}/openapi.json", timeout=WITHIN_S).json())
        for path in ("/healthz", "/skills", "/monitor/schema", "/calls", "/events", "/live"):
            document.check(path, requests.get(url + path, timeout=WITHIN_S))
            assert "default" in document.content["paths"][path]["get"]["responses"], path
        for path in ("/calls", "/events"):
            document.check(path, requests.get(f"{url}{path}?limit=0", timeout=WITHIN_S))
        document.check("/calls/{call_id}", requests.get(f"{url}/calls/nobody", timeout=WITHIN_S))
        assert requests.get(f"{url}/calls/", timeout=WITHIN_S, allow_redirects=False).status_code == 404

    async def scenario() -> None:
        async with served(log) as (_, url):
            await asyncio.to_thread(ask, url)

    log = write_log(tmp_path / "foreign.lcmlog", [(START, "EXAMPLE", b"12345678")])
    asyncio.run(scenario())
