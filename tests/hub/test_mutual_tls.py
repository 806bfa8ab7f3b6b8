"""A hub behind a proxy that ends TLS and asks each robot for a certificate."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

import pytest
import requests
from websockets.asyncio import client
from websockets.exceptions import InvalidStatus

from dimos_streams import clock
from dimos_streams.bridge.fleet.connection import HubConnection
from dimos_streams.bridge.fleet.hub_requests import HubUnreachableError
from dimos_streams.bridge.fleet.settings import HubLinkSettings
from dimos_streams.cli.bridge_client.answers import HEALTH
from dimos_streams.cli.bridge_client.certificates import own_context, own_tls
from dimos_streams.cli.bridge_client.connection import BridgeAddress, BridgeUnreachableError, open_gateway
from dimos_streams.client.http_session import CuttableSession, Tls
from dimos_streams.errors import UserError
from dimos_streams.fleet.batches import encoded_batch, encoded_event
from dimos_streams.fleet.commands import Hello
from tests.certificates import certificates
from tests.hub.serving import Robot, added, event, served_hub

Connect = Callable[[Mapping[str, Path]], contextlib.AbstractAsyncContextManager[HubConnection]]


@contextlib.asynccontextmanager
async def tls_proxy(files: Mapping[str, Path], port: int) -> AsyncIterator[str]:
    """The URL of what takes TLS with certificates of one authority, and passes plain bytes on."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(files["ca"]))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(files["cert"], files["key"])

    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_hub, to_hub = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pass_on(reader, to_hub), _pass_on(from_hub, writer))

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(serve(reader, writer)))

    async with await asyncio.start_server(begin, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await asyncio.gather(*serving)


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
        sink.close()
        await sink.wait_closed()


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    """A robot with its token, beside such a proxy; which certificates it has is said by the test."""
    ours = certificates(tmp_path / "ours")
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    token = tmp_path / "token"
    token.write_text(added(database, "r1")["r1"])
    with served_hub(database) as hub:

        @contextlib.asynccontextmanager
        async def connected(files: Mapping[str, Path]) -> AsyncIterator[HubConnection]:
            async with tls_proxy(ours, int(hub.url.rpartition(":")[2])) as url:
                settings = HubLinkSettings.model_validate({"url": url, "robot": "r1", "token_file": token, **files})
                connection = HubConnection(settings, rng=random.Random(1))
                try:
                    yield connection
                finally:
                    connection.close()

        yield connected


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_robot_with_a_certificate_ships_and_takes_commands(
    connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are named as a person does, with ``~`` for the user's directory."""
    monkeypatch.setenv("HOME", str(tmp_path))

    async def main() -> None:
        async with connect({name: Path(f"~/ours/{name}.pem") for name in ("ca", "cert", "key")}) as hub:
            assert (await hub.position("journal-1")).acknowledged == 0
            batch = encoded_batch("journal-1", "1", clock.utime(), [encoded_event(1, event(1))])
            assert (await hub.ship(batch)).acknowledged == 1
            async with asyncio.timeout(20), contextlib.aclosing(hub.commands()) as commands:
                assert isinstance(await anext(commands), Hello)

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_an_operator_with_a_certificate_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``monitor``, which a hub has not, is asked for at the proxy all the same: its WebSocket is another client."""
    ours = certificates(tmp_path / "ours")
    for name in ("ca", "cert", "key"):
        monkeypatch.setenv(f"DIMOS_STREAMS_{name.upper()}", str(ours[name]))

    async def main(port: int) -> None:
        async with tls_proxy(ours, port) as url:
            address = BridgeAddress(url, "operators-token")
            assert (await address.get("/healthz", HEALTH)).is_hub
            async with open_gateway(address) as gateway:
                assert await gateway.skills() == []
                async with contextlib.aclosing(gateway.events(after=0)) as events:
                    assert (await anext(events)).event.text == "hello"
            with monkeypatch.context() as patch:
                for name in ("ca", "cert", "key"):
                    patch.delenv(f"DIMOS_STREAMS_{name.upper()}")
                with pytest.raises(BridgeUnreachableError, match=r"not trusted: .*; DIMOS_STREAMS_CA names a file"):
                    await address.get("/healthz", HEALTH)
            async with client.connect(f"{url.replace('http', 'ws', 1)}/nothing", ssl=own_context("wss://")):
                pass

    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database, token="operators-token") as hub:
        robot.ship(hub, encoded_event(1, event(1, "hello")))
        with pytest.raises(InvalidStatus, match="HTTP 40"):
            asyncio.run(main(int(hub.url.rpartition(":")[2])))


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        (
            {"CA": "/nowhere"},
            "DIMOS_STREAMS_CA '/nowhere': No such file or directory; valid: a file of certificates",
        ),
        ({"KEY": __file__}, "DIMOS_STREAMS_KEY is the key of a certificate: set DIMOS_STREAMS_CERT too"),
        ({"CA": __file__}, "the files of DIMOS_STREAMS_CA can't be used: "),
    ],
)
def test_files_that_are_no_certificates_are_named(
    variables: Mapping[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"DIMOS_STREAMS_{name}", value)
    for asked in (lambda: own_context("wss://hub"), lambda: own_tls("https://hub")):
        with pytest.raises(UserError, match=f"^{why}"):
            asked()
    assert own_context("ws://hub") is None
    assert own_tls("http://127.0.0.1:7780") is None, "nor does a wrong file keep a stop from a robot here"


@pytest.mark.parametrize("variable", ["CA", "CERT"])
def test_a_pipe_is_named_and_keeps_no_command_waiting(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.pem")
    monkeypatch.setenv(f"DIMOS_STREAMS_{variable}", str(tmp_path / "pipe.pem"))
    with pytest.raises(UserError, match=f"^DIMOS_STREAMS_{variable} '.*pipe.pem': it is a device or a pipe"):
        own_tls("https://hub")


@pytest.mark.parametrize("name", ["ca", "cert", "key"])
def test_a_pipe_among_its_files_holds_up_no_session(name: str, tmp_path: Path) -> None:
    """A robot's link to its hub would wait in it, and its bridge could not end."""
    (tmp_path / "file.pem").touch()
    os.mkfifo(tmp_path / "pipe.pem")
    files = {"cert": tmp_path / "file.pem", name: tmp_path / "pipe.pem"}
    with socket.create_server(("127.0.0.1", 0)) as server, CuttableSession(Tls(**files)) as session:
        url = f"https://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(requests.ConnectionError, match=r"pipe\.pem' can't be used: it is a device or a pipe"):
            session.get(url, timeout=30)


@pytest.mark.slow
@pytest.mark.feature("H2")
@pytest.mark.parametrize(
    ("own", "authority", "why"),
    [
        (None, "ours", r"(certificate required|may be why: `cert` is not given$)"),
        ("foreign", "ours", r"(unknown ca|may be why: `cert` is .*/foreign/cert\.pem$)"),
        ("ours", "foreign", "its certificate is not trusted: .*certificate"),
    ],
)
def test_without_the_right_certificates_nothing_is_shipped_and_one_line_says_why(
    connect: Connect, tmp_path: Path, own: str | None, authority: str, why: str
) -> None:
    certificates(tmp_path / "foreign")

    async def main() -> None:
        files = {"ca": tmp_path / authority / "ca.pem"}
        if own is not None:
            files |= {name: tmp_path / own / f"{name}.pem" for name in ("cert", "key")}
        async with connect(files) as hub:
            with pytest.raises(HubUnreachableError, match=f"(?i)it can't be reached: .*{why}"):
                await hub.position("journal-1")

    asyncio.run(main())


@pytest.mark.feature("H2")
@pytest.mark.parametrize("named", ["ca", "cert", "key"])
def test_a_file_that_is_renewed_badly_is_named(named: str, tmp_path: Path) -> None:
    """As ``cert`` is for a moment, or for good, where a disk was full."""
    files = {name: tmp_path / "ours" / f"{name}.pem" for name in ("ca", "cert", "key")}
    certificates(tmp_path / "ours")
    files[named].write_text("")

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            settings = HubLinkSettings.model_validate(
                {"url": f"https://127.0.0.1:{server.getsockname()[1]}", "robot": "r1", **files}
            )
            connection = HubConnection(settings, rng=random.Random(1))
            try:
                with pytest.raises(HubUnreachableError, match=rf"own files \(.*`{named}` .*/ours/{named}\.pem"):
                    await connection.position("journal-1")
            finally:
                connection.close()

    asyncio.run(main())
