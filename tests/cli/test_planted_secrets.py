"""A live run whose model server sends back all that it was given: none of its secrets is in any file or output."""

from __future__ import annotations

import base64
import itertools
import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import requests

from dimos_streams.testing import ModelServer, Reply
from dimos_streams.testing.model_server import RecordedRequest
from tests.cli.blueprints import NASTY
from tests.cli.machine import Machine, read_until
from tests.cli.test_hostile_texts import check
from tests.viewer.open_recordings import served_in_a_thread

BLUEPRINT = "tests.cli.blueprints:careless"
KEY = "sk-p1anted+key/of"
TOKEN = "t0ken&0f'the\"bridge"
PASSWORD = "pa55%w0rd-of"
USER = "nobody"
SECRETS = (KEY, TOKEN, PASSWORD)
INPUT = ("refuse it", "refuse it at length", "say it", "call it", "spoil it", "end with it", "break off in it")


def forms() -> dict[str, str]:
    """The texts that no output may have in it, with their names."""
    found: dict[str, str] = {}
    for secret in SECRETS:
        found |= {
            secret: "as it is",
            json.dumps(secret)[1:-1]: "in JSON",
            repr(secret)[1:-1]: "in Python",
            quote(secret, safe=""): "in a URL",
            base64.b64encode(f"Bearer {secret}".encode()).decode(): "as Bearer, in base64",
            base64.b64encode(f"{USER}:{secret}".encode()).decode(): "as Basic",
            base64.b64encode(secret.encode()).decode(): "in base64",
            secret[:-3]: "cut",
        }
    return found


def leaks(text: str) -> list[str]:
    return [f"{form} ({what})" for form, what in forms().items() if form in text]


def answer(request: RecordedRequest) -> Reply:
    """Everything secret, in every form, and the headers as they came; where the operator's input says."""
    echoed = " ".join([*forms(), request.headers["authorization"], NASTY])
    echoed = " ".join(word for word in echoed.split(" ") if word not in [secret[:-3] for secret in SECRETS])
    said = [str(message["content"]) for message in request.body["messages"] if message["role"] == "user"][-1]
    escaped = "".join(f"\\u{ord(char):04x}" for char in KEY)
    in_calls = [("babble", f'{{"text": "{escaped} {TOKEN}"}}'.replace('the"', 'the\\"')), (KEY, "{}")]
    thoughts = chunk({"reasoning_content": KEY[:5]}), chunk({"reasoning_content": KEY[5:]}, KEY)
    replies = {
        "| refuse it\n": Reply.error(401, f"bad key: {echoed}", code=KEY),
        "| refuse it at length\n": Reply.error(401, "x" * (500 - 8) + KEY),
        "| say it\n": Reply.say(f"I was asked with {echoed}", piece=5),
        "| call it\n": Reply.calls(*in_calls, text=f"with {KEY}", piece=3),
        "| spoil it\n": Reply.raw(f"{{{echoed}"),
        "| end with it\n": Reply.raw(*thoughts),
        "| break off in it\n": Reply.raw(chunk({"content": f"{echoed} {KEY}"}), "NaN").but(done=False),
    }
    if request.body["messages"][-1]["role"] == "tool":
        return Reply.say("Done.")
    return next((reply for words, reply in replies.items() if words in said), Reply.say("Done."))


def chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


@contextmanager
def stream(url: str, headers: dict[str, str]) -> Iterator[list[str]]:
    """The lines of an event stream while it is read."""
    lines: list[str] = []
    with requests.get(f"{url}/tool_streams?from=0", headers=headers, stream=True, timeout=20) as response:

        def read() -> None:
            try:
                lines.extend(line.decode() for line in response.iter_lines())
            except Exception:  # it was closed by us, in the middle of a read
                return

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        yield lines
        response.close()


def open_to_others(folder: Path) -> list[str]:
    """The paths below a folder that somebody else may look into, the folder included."""
    return [f"{path} {path.stat().st_mode:o}" for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]


@pytest.mark.live
@pytest.mark.timeout(120)
@pytest.mark.feature("F6")
def test_planted_secrets_stay_out_of_every_file_and_output(machine: Machine, tmp_path: Path) -> None:
    log, report = tmp_path / "run.lcmlog", tmp_path / "report.html"
    with ModelServer(answer, checks=False).in_thread() as server:
        url = server.url.replace("://", f"://{USER}:{quote(PASSWORD)}@")
        given = {
            "OPENAI_API_KEY": KEY,
            "DIMOS_STREAMS_TOKEN": TOKEN,
            "DIMOS_STREAMS__AGENT__MODEL": "openai:m",
            "DIMOS_STREAMS__AGENT__BASE_URL": url,
            "DIMOS_STREAMS__BRIDGE__TOKEN": TOKEN,
            "DIMOS_STREAMS__AGENT__MODEL_OPTIONS__ATTEMPTS": "2",
            "DIMOS_STREAMS__AGENT__MODEL_OPTIONS__FIRST_WAIT_S": "0.01",
        }
        shown = [
            machine("run", BLUEPRINT, "--daemon", "--port", str(machine.port), "--record", str(log), **given),
            machine("config", BLUEPRINT, "--set", f"bridge.token={TOKEN}", **given),
            machine("check", BLUEPRINT, **given),
        ]
        assert [result.code for result in shown] == [0] * 3, shown
        assert "--set bridge.token shows a secret in the list of processes" in shown[1].err
        commands = machine.processes()
        with stream(f"http://127.0.0.1:{machine.port}", {"Authorization": f"Bearer {TOKEN}"}) as events:
            said = [machine("chat", stdin="\n".join(INPUT)), machine("say", INPUT[0], "--wait", "close", "--json")]
            served = [*pages(machine), watched(machine)]
        asked = ("status --json", "calls --json", "logs", "missions --json", "doctor")
        shown += [*said, *(machine(*command.split()) for command in asked)]
        visible, refused = machine("skills", "--token", TOKEN), machine("skills", "--token", f"{TOKEN}\n")
        assert (visible.code, "the list of processes" in visible.err) == (0, True)
        assert (refused.code, "--token ends with a line end" in refused.err) == (2, True)
        living = {path: path.read_bytes() for path in machine.state.rglob("*") if path.is_file()}
        assert open_to_others(machine.state) == []
        shown += [visible, refused, machine("stop"), machine("recording", "report", str(log), "-o", str(report))]
    assert {request.headers["authorization"][:6] for request in server.requests} == {"Basic "}
    reported = "".join(result.out + result.err for result in said)
    assert reported.count("[redacted]") > 20, reported
    for result in shown:
        assert leaks(result.out + result.err) == [], result
        check(result)
    assert len(events) > 50
    with served_in_a_thread(log) as url:
        served += [requests.get(f"{url}/{path}", timeout=20).text for path in ("skills", "calls", "events")]
    for text in (*served, *events, *commands):
        assert leaks(text) == [], text
    left = {path: path.read_bytes() for path in (*machine.state.rglob("*"), log, report) if path.is_file()}
    for path, content in itertools.chain(living.items(), left.items()):
        # While it lives, a run's own record has the token for the commands of its user.
        found = leaks(content.decode(errors="replace")) if path.name != "run.json" else []
        assert found == [], path
    assert [path.name for path in left if path.name == "run.json"] == []
    assert [text.count(b"the key is [redacted]") for path, text in left.items() if path.name == "careless.log"] == [3]
    assert any(b"[redacted]" in content for path, content in left.items() if path.suffix == ".lcmlog")
    assert open_to_others(machine.state) == []
    assert log.stat().st_mode & 0o077 == 0


def pages(machine: Machine) -> Iterator[str]:
    """All that the bridge serves to be read."""
    bridge = f"http://127.0.0.1:{machine.port}"
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
    for path in ("healthz", "metrics", "openapi.json", "skills", "modules", "calls", "monitor/schema", "", "nothing"):
        response = requests.get(f"{bridge}/{path}?token={quote(TOKEN)}", headers=headers, timeout=10)
        yield f"{response.headers} {response.text}"
    parameters = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters}
    response = requests.post(f"{bridge}/mcp", json=ask, headers=headers, timeout=10)
    yield f"{response.headers} {response.text}"


def watched(machine: Machine) -> str:
    """The first message that a console gets."""
    with machine.started_warm("monitor", "--json") as process:
        text = read_until(process, '"conversation"')
        process.send_signal(signal.SIGINT)
        return text + process.communicate(timeout=30)[0]
