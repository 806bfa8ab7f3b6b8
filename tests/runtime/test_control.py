"""The control socket of a run: its user's orders reach the supervisor, and answers come back."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from dimos_streams.common.process.live_loop import run_live
from dimos_streams.errors import DimosStreamsError, ModuleFailedError, UserError
from dimos_streams.runtime.live import control
from dimos_streams.runtime.live.control import Order, _connect, _listening, ask, take_orders
from tests.helpers import until

pytestmark = pytest.mark.feature("K4")

KETTLE = Order(command="restart", module="kettle")


class Kitchen:
    """Restarts, or does not."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.error: Exception | None = None

    async def restart(self, module: str, reason: str) -> tuple[str, ...]:
        self.asked.append((module, reason))
        if self.error is not None:
            raise self.error
        return (module, "oven")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Longer than the address of a socket may be."""
    deep = tmp_path / ("x" * 100) / ("y" * 100)
    deep.mkdir(parents=True)
    return deep


def test_an_order_is_carried_out_and_answered(run_dir: Path) -> None:
    async def main() -> None:
        kitchen = Kitchen()
        async with take_orders(run_dir, kitchen.restart):
            answer = await ask(run_dir, KETTLE)
            assert (answer.text, answer.modules) == ("restarted: kettle, oven", ("kettle", "oven"))
            assert kitchen.asked == [("kettle", "an operator restarts module 'kettle'")]
            kitchen.error = UserError("kettle.py:3: no good")
            with pytest.raises(UserError, match=r"^kettle.py:3: no good$"):
                await ask(run_dir, KETTLE)
            kitchen.error = ModuleFailedError("it did not start")
            with pytest.raises(DimosStreamsError, match=r"^it did not start$") as failed:
                await ask(run_dir, KETTLE)
            assert not isinstance(failed.value, UserError)
            kitchen.error = ValueError("a fault of ours")
            with pytest.raises(DimosStreamsError, match=r"^internal error \(ValueError\); the run's log says more$"):
                await ask(run_dir, KETTLE)

    run_live(main())
    assert list(run_dir.iterdir()) == []


def test_a_file_in_the_place_of_the_sockets_way_is_left_alone(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled_log: pytest.LogCaptureFixture
) -> None:
    """The socket has its name by way of a descriptor, which is soon another file's."""
    opened: list[int] = []

    def listening(directory: Path) -> socket.socket:
        made = _listening(directory)
        opened.append(os.open(tmp_path / "another file", os.O_CREAT | os.O_RDWR))
        assert made.getsockname() == f"/proc/self/fd/{opened[0]}/control.sock"
        return made

    async def main() -> None:
        async with take_orders(run_dir, Kitchen().restart):
            assert (await ask(run_dir, KETTLE)).modules == ("kettle", "oven")

    monkeypatch.setattr(control, "_listening", listening)
    run_live(main())
    os.close(opened[0])
    assert settled_log.records == []


def test_who_talks_nonsense_or_nothing_disturbs_nobody(run_dir: Path) -> None:
    async def main() -> None:
        kitchen = Kitchen()
        async with take_orders(run_dir, kitchen.restart):
            silent = _connect(run_dir)
            for line in (b"[]\n", b'{"command": "stop", "module": ""}\n', b"\xff\n", b"x" * 200_000 + b"\n"):
                reader, writer = await asyncio.open_unix_connection(sock=_connect(run_dir))
                writer.write(line)
                answered = await reader.read()
                assert b'"problem":"misused"' in answered or (len(line) > 65536 and answered == b"")
                writer.close()
            assert (await ask(run_dir, KETTLE)).modules == ("kettle", "oven")
            silent.close()
        assert kitchen.asked == [("kettle", "an operator restarts module 'kettle'")]

    run_live(main())


def test_who_waits_for_an_answer_when_the_run_ends_hears_that_it_has(run_dir: Path) -> None:
    async def main() -> None:
        restarts = list[str]()

        async def restart(module: str, reason: str) -> tuple[str, ...]:
            restarts.append(f"{module} begins")
            try:
                await asyncio.Event().wait()
            finally:
                restarts.append(f"{module} is over")
            raise AssertionError

        async with take_orders(run_dir, restart):
            asking = asyncio.create_task(ask(run_dir, KETTLE))
            await until(lambda: restarts)
        assert restarts == ["kettle begins", "kettle is over"]
        with pytest.raises(DimosStreamsError, match=r"does not answer: it has ended$"):
            await asking

    run_live(main())


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"x" * 200_000 + b"\n", r"does not answer: its answer is too long: "),
        (b"[]\n", r"does not answer: its answer"),
        (b"", r"has not answered within 0\.5 s$"),
    ],
)
def test_who_gets_no_answer_leaves_no_connection_open(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes, says: str
) -> None:
    monkeypatch.setattr(control, "_ANSWERED_WITHIN_S", 30.0 if answer else 0.5)

    async def main() -> None:
        left = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(answer)
            await reader.read()
            left.set()
            writer.close()

        server = await asyncio.start_unix_server(serve, sock=_listening(run_dir))
        with pytest.raises(DimosStreamsError, match=says):
            await ask(run_dir, KETTLE)
        async with asyncio.timeout(10.0):
            await left.wait()
        server.close()

    run_live(main())


def test_a_run_that_does_not_listen_is_said_to_be_so(run_dir: Path) -> None:
    async def main() -> None:
        with pytest.raises(DimosStreamsError, match="does not answer: No such file or directory"):
            await ask(run_dir, KETTLE)
        async with take_orders(run_dir / "nowhere", Kitchen().restart):  # the run goes on without
            pass

    run_live(main())


def test_who_says_nothing_is_not_waited_for(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_ASKED_WITHIN_S", 0.02)

    async def main() -> None:
        async with take_orders(run_dir, Kitchen().restart), asyncio.timeout(10.0):
            reader, writer = await asyncio.open_unix_connection(sock=_connect(run_dir))
            assert await reader.read() == b""
            writer.close()

    run_live(main())


def test_an_order_whose_giver_has_left_is_not_carried_out(run_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As it is with one that was given while the supervisor was suspended, once that goes on."""

    async def main() -> None:
        kitchen = Kitchen()
        async with take_orders(run_dir, kitchen.restart):
            with _connect(run_dir) as left:
                left.sendall(KETTLE.model_dump_json().encode() + b"\n")
            await until(lambda: "an order is not carried out" in caplog.text)
        assert kitchen.asked == []

    run_live(main())


def test_nobody_orders_a_run_by_a_socket_that_another_user_has_made(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        kitchen = Kitchen()
        async with take_orders(run_dir, kitchen.restart):
            monkeypatch.setattr(os, "geteuid", lambda: 4711)
            with pytest.raises(DimosStreamsError, match=r"it belongs to user \d+, not to 4711"):
                await ask(run_dir, KETTLE)
        assert kitchen.asked == []

    run_live(main())
