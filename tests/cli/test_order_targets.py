"""Which bridges an operator's orders go to."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from dimos_streams.cli.bridge_client import robot_orders
from dimos_streams.cli.bridge_client.connection import BridgeAddress, BridgeUnreachableError, find_bridge, living_runs
from dimos_streams.cli.bridge_client.robot_orders import OrderResult, OrderTarget, give, order_targets
from dimos_streams.cli.commands.of_runs.say import say
from dimos_streams.cli.commands.of_runs.status import status
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.terminal.output import note
from dimos_streams.client import asking_again
from dimos_streams.client.orders import Order
from dimos_streams.errors import BadRequestError, DimosStreamsError, NoAnswerError, UnknownRobotError, UserError
from dimos_streams.runtime import registry, run_directories
from tests.client.event_server import EventServer, Peer, event_server
from tests.helpers import shut, until
from tests.runtime.run_records import living_record


@pytest.mark.parametrize(
    ("report", "lines"), [({"robots": {}}, ["r1: held", "r2: held"]), ({}, ["r1: held\nr2: held"])]
)
def test_an_answer_has_a_line_for_each_robot_of_a_hub_and_no_other(
    report: dict[str, object], lines: list[str]
) -> None:
    assert OrderResult("here", done=True, text="r1: held\nr2: held", report=report).lines == lines


@pytest.mark.parametrize(
    ("port", "bridge", "url"),
    [
        (8420, None, "http://127.0.0.1:8420"),
        (None, "http://127.0.0.1:8421", "http://127.0.0.1:8421"),
        (None, None, None),
    ],
    ids=["its own bridge", "that of another machine", "none that could be asked"],
)
def test_a_run_is_stopped_by_the_bridge_that_its_other_commands_ask(
    port: int | None, bridge: str | None, url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path))
    record = living_record().model_copy(update={"port": port, "bridge": bridge, "token": "secret"})
    registry.write(record)
    (target,) = order_targets(BridgeChoice())
    assert target.name == record.run_id
    assert (target.address and target.address.url) == url
    assert (target.address and target.address.token) == (url and "secret")


def test_an_order_to_a_run_of_which_nobody_answers_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path))
    record = living_record().model_copy(update={"port": 9, "clocks": {}})
    registry.write(record)
    [result] = asyncio.run(give("/calls/cancel", "", "", order_targets(BridgeChoice())))
    assert (result.target, result.done) == (record.run_id, False)


def test_a_living_run_whose_record_cannot_be_read_is_named_and_nothing_counts_as_done_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path))
    directory = run_directories.new_run_dir("rover")
    ended = directory.with_name("1-rover-1")
    shutil.copytree(directory, ended)
    named = f"run rover-{os.getpid()} lives (pid {os.getpid()}), but {directory}/run.json can't be read: "
    for text in ("", "{", "{}"):
        for each in (directory, ended):
            (each / registry.RECORD_FILE).write_text(text)
        [result] = asyncio.run(give("/robots/stop", "", "", order_targets(BridgeChoice())))
        assert not result.done
        assert result.text.startswith(f"NOT done: {named}")
        for look in (living_runs, partial(find_bridge, BridgeChoice())):
            with pytest.raises(DimosStreamsError, match=f"^{re.escape(named)}"):
                look()
        status()
        assert capsys.readouterr().err.startswith(named)
        with pytest.raises(DimosStreamsError, match=f"^not ready: {re.escape(named)}.+ its bridge$"):
            status(ready=True)
    read_again = living_record(directory)
    assert [target.name for target in order_targets(BridgeChoice())] == [read_again.run_id]


def test_an_order_with_an_address_needs_no_right_to_look_for_runs() -> None:
    directory = run_directories.state_dir() / "runs"
    directory.mkdir(parents=True)
    with shut(directory):
        for url, port in (("http://127.0.0.1:8420", None), (None, 8420)):
            (target,) = order_targets(BridgeChoice(url=url, port=port))
            assert target.name == "http://127.0.0.1:8420"
        for look in (partial(order_targets, BridgeChoice()), run_directories.run_dirs):
            with pytest.raises(UserError, match=rf"^the runs in {directory} .+: Permission denied; "):
                look()


@pytest.mark.parametrize("lives", [True, False])
def test_a_stop_waits_for_the_bridge_of_a_run_that_lives(
    lives: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops the robot in the second in which its bridge is restarted needs not type it again."""
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(asking_again, "_ASK_AGAIN_S", (0.01,))
    record = living_record()
    asked: list[str] = []

    def post(self: BridgeAddress, method: str, path: str, body: object, timeout_s: float) -> object:
        asked.append(path)
        if len(asked) == 1:
            silence = NoAnswerError("connection refused", may_have_arrived=False)
            raise BridgeUnreachableError(self._unreachable("connection refused")) from silence
        return {"confirmed": True, "text": "all stand still"}

    monkeypatch.setattr(BridgeAddress, "_request", post)
    run = record if lives else record.model_copy(update={"pid_started": 1})
    to = OrderTarget(run.run_id, BridgeAddress("http://127.0.0.1:9", run=run))
    (result,) = asyncio.run(give("/robots/stop", "", "", [to]))
    assert (result.done, len(asked)) == ((True, 2) if lives else (False, 1))
    assert (f"though run {run.run_id} lives" in to.address._unreachable("x")) is lives  # type: ignore[union-attr]


def test_who_answers_at_once_is_heard_before_who_takes_long_and_that_one_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever stops robots must not wait for one that hangs to know of the others, nor to use another stop."""
    monkeypatch.setattr(robot_orders, "_SLOW_S", 0.3)
    monkeypatch.setattr(asking_again, "_ASK_AGAIN_S", (0.01,))
    asked = {"slow": threading.Event(), "over": threading.Event()}

    def hang(peer: Peer) -> None:
        asked["slow"].set()
        assert asked["over"].wait(20)

    def answer(peer: Peer) -> None:
        assert asked["slow"].wait(20)
        peer.answer("200 OK", b'{"confirmed": true, "text": "all stand still"}')

    async def main(urls: list[str]) -> None:
        heard: list[OrderResult] = []
        to = [OrderTarget(url, BridgeAddress(url)) for url in urls]
        giving = asyncio.create_task(give("/robots/stop", "", "", to, heard.append))
        await until(lambda: heard)
        assert [(result.target, result.done, result.text) for result in heard] == [(urls[1], True, "all stand still")]
        said: list[str] = []
        slow = f"the bridge has not answered yet ({urls[0]}); use the emergency stop"

        def is_said() -> bool:
            said.extend(capsys.readouterr().err.splitlines())
            return slow in said

        await until(is_said)
        asked["over"].set()
        assert [result.done for result in await giving] == [False, True]

    with event_server(hang) as slow, event_server(answer) as quick:
        asyncio.run(main([slow.url.rstrip("/"), quick.url.rstrip("/")]))


@pytest.mark.parametrize(
    ("order", "slow_s", "said"),
    [
        ("/calls/cancel", 20.0, "1 call has not ended yet (run-0)\n"),
        ("/robots/stop", 0.1, "the stop is not confirmed yet (run-0); use the emergency stop\n"),
    ],
    ids=["cancel", "stop"],
)
def test_of_a_bridge_that_answers_it_is_said_what_it_waits_for(
    order: Order, slow_s: float, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    is_said = threading.Event()
    call = {"call_id": "c1", "skill": "move", "module": "drive", "caller": "cli", "parent": "", "arguments": {}}

    def answer(peer: Peer) -> None:
        if not peer.body:
            peer.answer("200 OK", json.dumps([{**call, "state": "open"}]).encode())
        elif is_said.wait(20):
            peer.answer("200 OK", b'{"confirmed": false, "text": "not all"}')

    def say(text: str) -> None:
        note(text)
        is_said.set()

    async def one(address: BridgeAddress) -> int:
        return 1

    monkeypatch.setattr(robot_orders, "_ASKED_AFTER_S", 0.0)
    monkeypatch.setattr(robot_orders, "_SLOW_S", slow_s)
    monkeypatch.setattr(robot_orders, "note", say)
    if order == "/robots/stop":
        monkeypatch.setattr(robot_orders, "_open_calls", one)
    with event_server(answer) as server:
        to = [OrderTarget("run-0", BridgeAddress(server.url.rstrip("/")))]
        assert [result.text for result in asyncio.run(give(order, "", "", to))] == ["not all"]
    assert capsys.readouterr().err == said


def test_of_several_runs_the_robots_of_all_are_named_where_none_has_the_one_that_was_asked_for() -> None:
    def answering(*robots: str) -> Callable[[Peer], None]:
        problem = {"type": "urn:dimos-streams:problem:unknown-robot", "detail": "no", "robots": robots, "status": 404}
        form = "Content-Type: application/problem+json\r\n"
        return lambda peer: peer.answer("404 Not Found", json.dumps(problem).encode(), form)

    async def stop(*servers: EventServer) -> str:
        to = [OrderTarget(f"run-{at}", BridgeAddress(each.url.rstrip("/"))) for at, each in enumerate(servers)]
        with pytest.raises(UnknownRobotError) as raised:
            await give("/robots/stop", "robt1", "", to)
        return str(raised.value)

    with event_server(answering()) as nameless, event_server(answering("robot2", "robot1")) as named:
        assert asyncio.run(stop(nameless, named)) == (
            "no robot is called 'robt1'; did you mean 'robot1'? (robots: robot1, robot2 of run run-1)"
        )
    with event_server(answering("robot1")) as one, event_server(answering("robot1")) as other:
        assert asyncio.run(stop(one, other)).endswith("(robots: robot1 of run run-0; robot1 of run run-1)")
    with event_server(answering("robot1")) as only:
        assert asyncio.run(stop(only)) == "no"
        to = [OrderTarget("run-0", BridgeAddress(only.url.rstrip("/"))), OrderTarget("run-1", None)]
        with pytest.raises(UnknownRobotError):  # a run without a bridge can't know it either
            asyncio.run(give("/robots/stop", "robt1", "", to))
        to[1] = OrderTarget("run-1", BridgeAddress("http://127.0.0.1:9"))
        assert [result.done for result in asyncio.run(give("/robots/stop", "robt1", "", to))] == [False]


def test_a_robot_may_be_that_of_a_run_of_which_nobody_knows_the_bridge() -> None:
    problem = {"type": "urn:dimos-streams:problem:unknown-robot", "detail": "no", "robots": ["robot1"], "status": 404}
    form = "Content-Type: application/problem+json\r\n"
    with event_server(lambda peer: peer.answer("404 Not Found", json.dumps(problem).encode(), form)) as server:
        known = OrderTarget("run-0", BridgeAddress(server.url.rstrip("/")))
        unreadable = OrderTarget("run-1", None, why_unknown="its record can't be read")
        (result,) = asyncio.run(give("/robots/stop", "robot2", "", [known, unreadable]))
    assert (result.target, result.done, result.text) == ("run-1", False, "NOT done: its record can't be read")


def test_an_order_that_one_bridge_can_not_read_is_still_given_by_the_others() -> None:
    problem = {"type": "urn:dimos-streams:problem:bad-request", "detail": "body.x: no", "errors": {"body.x": "no"}}
    form = "Content-Type: application/problem+json\r\n"

    def unread(peer: Peer) -> None:
        peer.answer("422 Unprocessable Content", json.dumps(problem).encode(), form)

    def done(peer: Peer) -> None:
        peer.answer("200 OK", b'{"confirmed": true, "text": "all stand still"}')

    heard: list[OrderResult] = []
    with event_server(unread) as old, event_server(done) as new:
        to = [OrderTarget(each.url, BridgeAddress(each.url.rstrip("/"))) for each in (old, new)]
        results = asyncio.run(give("/robots/stop", "", "", to, heard.append))
        with pytest.raises(BadRequestError, match=r"^body\.x: no$"):
            asyncio.run(give("/robots/stop", "", "", to[:1]))
    said = [(each.done, each.text) for each in results]
    assert said == [(False, "NOT done: body.x: no"), (True, "all stand still")]
    assert heard == results[::-1]


def test_which_of_several_runs_is_meant_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        living = [
            SimpleNamespace(
                run_id=name, bridge_url=f"{url}{end}", bridge_on="", port=1, token=None, pid=None, pid_started=None
            )
            for name, end in (("new-1", ""), ("old-1", "/"))
        ]
        monkeypatch.setattr(registry, "runs", lambda: living)
        with pytest.raises(BridgeUnreachableError):
            say("hello", bridge=BridgeChoice())
    assert capsys.readouterr().err == "several runs live: new-1, the newest, is meant, not old-1\n"
