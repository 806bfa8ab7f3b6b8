"""Who is parsed, and whose request is begun, in which turn of the loop."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bridge.app import guarded
from dimos_streams.serving.server import turns
from dimos_streams.serving.server.request_guard import Guard
from dimos_streams.serving.server.request_order import RequestOrder, leave
from dimos_streams.serving.server.turns import Turns
from tests.bridge.http.test_greedy_requests import running
from tests.bridge.serving import served

pytestmark = pytest.mark.feature("F6")


class Clock:
    """Time that passes only by work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(clock, "monotonic", lambda: self.now)


class Busy:
    """Wants ``pieces`` pieces of work, each of which takes ``piece_s``."""

    def __init__(self, turns: Turns, time: Clock, done: list[Busy], *, pieces: int, piece_s: float) -> None:
        self._turns, self._time, self._done = turns, time, done
        self._pieces, self._piece_s = pieces, piece_s

    def go_on(self) -> None:
        self._time.now += self._piece_s
        self._done.append(self)
        self._pieces -= 1
        if self._pieces:
            self._turns.wait(self, asyncio.get_running_loop(), is_new=False)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def turns_of(done: list[Busy], count: int) -> list[list[Busy]]:
    """What is done in each of the next turns of the loop."""
    found = []
    for _ in range(count):
        await asyncio.sleep(0)
        found.append(done[:])
        done.clear()
    return found


def test_a_turn_of_the_loop_is_bounded_in_time_however_much_a_piece_of_work_costs(time: Clock) -> None:
    async def check() -> None:
        loop, shared, done = asyncio.get_running_loop(), Turns(), list[Busy]()
        for _ in range(100):
            shared.wait(Busy(shared, time, done, pieces=1, piece_s=turns.SLICE_S * 0.6), loop, is_new=False)
        assert [len(turn) for turn in await turns_of(done, 51)] == [2] * 50 + [0]

    asyncio.run(check())


def test_what_costs_little_is_bounded_in_number(time: Clock) -> None:
    async def check() -> None:
        loop, shared, done = asyncio.get_running_loop(), Turns(), list[Busy]()
        for _ in range(100):
            shared.wait(Busy(shared, time, done, pieces=2, piece_s=0.0), loop, is_new=True)
        assert {len(turn) for turn in await turns_of(done, 12)} == {turns.MOST}

    asyncio.run(check())


def test_who_is_new_waits_for_one_of_the_others_and_nobody_for_ever(time: Clock) -> None:
    async def check() -> None:
        loop, shared, done = asyncio.get_running_loop(), Turns(), list[Busy]()
        greedy = [Busy(shared, time, done, pieces=1000, piece_s=turns.SLICE_S * 0.6) for _ in range(50)]
        for each in greedy:
            shared.wait(each, loop, is_new=False)
        asking = Busy(shared, time, done, pieces=1, piece_s=0.0)
        shared.wait(asking, loop, is_new=True)
        assert (await turns_of(done, 1))[0][:2] == [greedy[0], asking]
        items = [Busy(shared, time, done, pieces=1, piece_s=turns.SLICE_S) for _ in range(100)]
        for each in items:
            shared.wait(each, loop, is_new=True)
        later = await turns_of(done, 60)
        assert {each for turn in later for each in turn} > set(greedy)

    asyncio.run(check())


def test_what_comes_at_once_is_bounded_in_time_too(time: Clock) -> None:
    async def check() -> None:
        loop, shared = asyncio.get_running_loop(), Turns()

        def admitted() -> int:
            count = 0
            for _ in range(10):
                if shared.admit(loop):
                    time.now += turns.SLICE_S * 0.6
                    count += 1
            return count

        assert admitted() == 2
        await asyncio.sleep(0)
        time.now += 1.0
        assert admitted() == 2

    asyncio.run(check())


class App:
    """Notes in which turn of the loop which request is begun."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, str]] = []
        self.turn = 0
        self.scopes: list[dict[str, Any]] = []
        self.outdated_s = 0.0
        order = RequestOrder(self._serve, lambda: self.outdated_s)
        self._guarded = Guard(order, host="127.0.0.1", token=None)

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun.append((self.turn, scope["path"]))

    def ask(self, path: str, method: str = "GET", before: str = "") -> asyncio.Task[None]:
        """Ask for a path; ``before`` is what stands before it if the target is a whole address."""

        async def nothing(*message: Any) -> Any:
            raise AssertionError(f"nothing is sent or received: {message}")

        scope = {
            "type": "http",
            "method": method,
            "path": before + path,
            "raw_path": (before + path).encode(),
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1")],
        }
        self.scopes.append(scope)
        return asyncio.get_running_loop().create_task(self._guarded(scope, nothing, nothing))

    async def until(self, enough: Callable[[], bool]) -> None:
        while not enough():
            await asyncio.sleep(0)
            self.turn += 1


def test_requests_for_much_are_begun_one_in_a_turn_and_health_and_commands_do_not_wait_for_them() -> None:
    async def check() -> None:
        app = App()
        for _ in range(50):
            app.ask("/tool_streams")
            app.ask("/calls")
        short = ["/calls/c1/cancel", "/calls", "/healthz"]
        for path in short:
            app.ask(path, "GET" if path == "/healthz" else "POST")
        await app.until(lambda: len(app.begun) == 103)
        assert max(turn for turn, path in app.begun if path in ("/healthz", "/calls/c1/cancel")) <= 4
        for_much = [turn for turn, path in app.begun if path == "/tool_streams"]
        assert len(set(for_much)) == 50

    asyncio.run(check())


def test_health_does_not_wait_for_those_who_bring_something() -> None:
    async def check() -> None:
        app = App()
        for _ in range(50):
            app.ask("/calls", "POST")
        app.ask("/healthz")
        await app.until(lambda: len(app.begun) == 51)
        assert [turn for turn, path in app.begun if path == "/healthz"] == [0]
        assert len({turn for turn, path in app.begun if path == "/calls"}) == 50

    asyncio.run(check())


def test_after_a_standstill_nothing_is_begun_for_a_client_that_has_left_but_what_ends_something() -> None:
    """A robot that moves when a container goes on may do so for somebody who gave up an hour ago."""

    async def check() -> None:
        app = App()
        app.outdated_s = 60.0
        left = app.ask("/calls", "POST")
        for path in ("/robots/stop", "/calls/c1/cancel", "/calls/cancel"):
            app.ask(path, "POST")
        app.ask("/healthz")
        await app.until(lambda: len(app.begun) == 4)
        leave(app.scopes[0])
        await left
        assert "/calls" not in [path for _, path in app.begun]
        app.outdated_s = 0.001
        await app.ask("/calls", "POST")
        assert app.begun[-1][1] == "/calls", "its client is there still"

    asyncio.run(check())


def test_what_ends_something_is_carried_out_though_its_client_leaves_behind_many_others() -> None:
    async def check() -> None:
        app = App()
        for outdated_s in (0.0, 60.0):
            app.begun.clear()
            app.outdated_s = outdated_s
            for _ in range(20):
                app.ask("/calls", "POST")
            ending = ("/calls/c1/cancel", "/robots/stop", "/robots/robot1/robots/stop", "/robots/robot1/calls/cancel")
            for path in ending:
                app.ask(path, "POST")
            await asyncio.sleep(0)
            for scope in app.scopes:
                leave(scope)
            assert {path for _, path in app.begun} - {"/calls"} == set(ending)

    asyncio.run(check())


def test_after_a_standstill_requests_keep_their_order_and_a_release_undoes_no_stop_behind_it() -> None:
    async def check() -> None:
        app = App()
        left_s = iter([0.001] * 6)
        app._guarded._app = RequestOrder(app._serve, lambda: next(left_s, 0.0))
        paths = ("/robots/release", "/calls", "/settings", "/mcp", "/robots/stop", "/calls/cancel")
        refused = await asyncio.gather(*(app.ask(path, "POST") for path in paths), return_exceptions=True)
        assert [path for _, path in app.begun] == [*paths[4:], *paths[2:4]]
        assert all("'status': 409" in str(each) for each in refused[:2])

    asyncio.run(check())


@pytest.mark.parametrize(
    ("path", "body", "is_begun"),
    [
        ("/calls", {"skill": "robot1_pause"}, True),
        ("/calls", {"skill": "/robot1/pause"}, True),
        ("/robots/robot1/calls", {"skill": "abort", "agent": ""}, True),
        ("/calls", {"skill": "resume", "arguments": {"skill": "pause"}}, False),
        ("/mcp", {"method": "notifications/cancelled"}, True),
        ("/mcp", {"method": "tools/call", "params": {"name": "cancel_call"}}, True),
        ("/mcp", {"method": "tools/call", "params": {"name": "drive"}}, False),
        ("/mcp", [], False),
    ],
)
def test_after_a_standstill_what_ends_something_by_its_body_outlasts_its_client(
    path: str, body: Any, is_begun: bool
) -> None:
    got: list[bytes] = []
    whole = json.dumps(body).encode()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        got.append((await receive())["body"])

    async def receive() -> Any:
        return {"type": "http.request", "body": whole, "more_body": False}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    async def check() -> None:
        headers = [(b"host", b"127.0.0.1"), (b"content-length", b"%d" % len(whole))]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
        served = guarded(app, host="127.0.0.1", token=None, outdated_s=lambda: 60.0)
        asking = asyncio.ensure_future(served(scope, receive, send))
        await asyncio.sleep(0)
        leave(scope)
        await asking
        assert got == [whole] * is_begun

    asyncio.run(check())


@pytest.mark.parametrize("before", ["", "http://127.0.0.1"])
def test_a_request_whose_client_leaves_while_it_waits_is_over_at_once(before: str) -> None:
    async def check() -> None:
        app = App()
        waiting = [app.ask("/tool_streams", before=before) for _ in range(20)]
        await asyncio.sleep(0)
        for scope in app.scopes[1:19]:
            leave(scope)
        await app.until(lambda: all(each.done() for each in waiting[1:19]))
        assert app.turn <= 2, "no turn of theirs is awaited"
        await app.until(waiting[19].done)
        assert len(app.begun) == 2
        assert app.turn <= 4

    asyncio.run(check())


def test_what_clients_leave_behind_while_they_wait_is_nothing() -> None:
    with served() as bridge:

        async def gone() -> bool:
            """All have asked before the first can be begun, and left."""
            request = f"GET /tool_streams HTTP/1.1\r\nHost: 127.0.0.1:{bridge.port}\r\n\r\n".encode()
            order._for_much._taken = True  # nobody else gets a turn
            for _ in range(40):
                with socket.create_connection(("127.0.0.1", bridge.port), timeout=10) as connection:
                    connection.sendall(request)
            server = running(bridge).server_state
            while not order._for_much._waiting:  # noqa: ASYNC110 - of the server
                await asyncio.sleep(0)
            while server.connections or server.tasks:  # noqa: ASYNC110
                await asyncio.sleep(0)
            return all(turn.done() for turn in order._for_much._waiting)

        app: Any = running(bridge).config.app
        order = app._app
        assert bridge.run(gone())
