"""No field of a request brings a secret of the run into its journal, its files, its events or an answer."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import pytest

from dimos_streams.common.secrets import know
from tests.bridge.mcp.test_mcp import INITIALIZE
from tests.bridge.serving import Served, served

SECRET = "sk-p1ant3d/key+7"
FOLLOW = {"skill": "follow", "arguments": {"description": "ann"}}

pytestmark = pytest.mark.slow


def refused(bridge: Served) -> list[str]:
    """What is said of names with a secret in them; redacted, they could be somebody else's."""
    answers = [
        bridge.post("/calls", {**FOLLOW, "caller": SECRET}),
        bridge.post("/calls", {**FOLLOW, "caller": f"ann.{b64encode(SECRET.encode()).decode().rstrip('=')}"}),
        bridge.post("/calls", {**FOLLOW, "idempotency_key": f"k{SECRET}"}),
        bridge.post("/settings", {"assignments": ["worker.pace=2"], "caller": SECRET}),
    ]
    assert [answer.status_code for answer in answers] == [409] * 4
    assert all("has a secret of this run in it" in answer.json()["detail"] for answer in answers)
    greeting = {**INITIALIZE["params"], "clientInfo": {"name": f"a{SECRET}", "version": "1"}}
    greeted = bridge.post("/mcp", {**INITIALIZE, "params": greeting})
    assert "params.clientInfo.name: it has a secret" in greeted.json()["error"]["message"]
    return [*(answer.text for answer in answers), greeted.text]


def named(bridge: Served) -> list[str]:
    """What is said of values that are wrong, as they were given."""
    answers = [
        bridge.post("/calls", {"skill": SECRET}),
        bridge.post("/calls", {**FOLLOW, "agent": SECRET}),
        bridge.post("/calls", {**FOLLOW, "on_loss": SECRET}),
        bridge.post("/calls", {**FOLLOW, "on_loss": f"{'x' * 70}{SECRET}"}),  # of which the error shows the beginning
        bridge.post("/calls", {**FOLLOW, SECRET: 1}),
        bridge.post("/calls", {"skill": "follow", "arguments": {SECRET: SECRET}}),
        bridge.get(f"/calls/{quote(SECRET, safe='')}"),
        bridge.get(f"/{SECRET}"),
        bridge.post("/robots/stop", {"robot": SECRET}),
        bridge.post("/settings", {"assignments": [f"{SECRET}=1", f"worker.pace={SECRET}"]}),
    ]
    assert all(400 <= answer.status_code < 500 for answer in answers)
    return [answer.text for answer in answers]


def reasons(bridge: Served) -> list[str]:
    """What is said of calls and robots that were ended for a reason with a secret in it."""
    call_id = bridge.call("follow", "answer", description="ann")["call_id"]
    answers = [bridge.post(f"/calls/{call_id}/cancel", {"reason": f"because of {SECRET}"})]
    assert bridge.run(bridge.broker.wait(call_id, "close", 10.0))
    bridge.call("follow", "answer", description="ann")
    answers.append(bridge.post("/robots/stop", {"reason": f"because of {SECRET}"}))
    answers += [bridge.post("/calls", FOLLOW), bridge.get("/healthz"), bridge.get("/calls"), bridge.get("/robots")]
    assert answers[-3].json()["stopped"]["stops"][0]["reason"] == "because of [redacted]"
    assert bridge.run(bridge.broker.view(call_id)).text == "because of [redacted]"
    return [answer.text for answer in answers]


def test_no_field_brings_one_in(tmp_path: Path) -> None:
    know(SECRET)
    with served(journal=tmp_path / "journal.sqlite") as bridge:
        said = [*refused(bridge), *named(bridge), *reasons(bridge)]
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {"journal.sqlite", "journal.stops.json"} <= kept.keys()
    assert [text for text in said if "sk-p1" in text] == []
    assert [name for name, content in kept.items() if b"sk-p1" in content] == []
