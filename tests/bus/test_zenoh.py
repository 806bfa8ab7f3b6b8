"""Zenoh: peers that find each other, what they lose and keep, and sessions that end."""

from __future__ import annotations

import asyncio
import json
import operator
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dimos_streams.bus import Bus, create_bus
from dimos_streams.bus.packet_filter import open_fds
from dimos_streams.bus.sizes import MAX_MESSAGE
from dimos_streams.bus.zenoh import session
from dimos_streams.bus.zenoh.bus import ZenohBus
from dimos_streams.bus.zenoh.config import session_config
from dimos_streams.bus.zenoh.keys import KeySpace
from dimos_streams.bus.zenoh.scouting import peers_found
from dimos_streams.bus.zenoh.url import ZenohUrl
from dimos_streams.cli.system.zenoh_checks import _peers, check_zenoh
from dimos_streams.errors import BusError, UserError
from dimos_streams.messages.codec import decode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS, STATUS
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.sending.publisher import ToolStreamPublisher
from tests.bus.stream_end import beat
from tests.certificates import certificates
from tests.helpers import anybody, no_threads, until, wait_for

CANCELS = "/skill_cancels#dimos_streams.SkillCancel"
TWIST = "/robot1/cmd_vel#geometry_msgs.Twist"


def with_buses(*urls: str, scenario: Callable[..., Awaitable[None]]) -> None:
    async def main() -> None:
        buses = [create_bus(url) for url in urls]
        try:
            for bus in buses:
                await bus.open()
            async with asyncio.timeout(20):
                await scenario(*buses)
        finally:
            for bus in buses:
                await bus.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("ca=/nowhere.pem", "'/nowhere.pem', the 'ca' of a zenoh bus, can't be read: No such file"),
        ("ca={pipe}", "the 'ca' of a zenoh bus, can't be read: it is a device or a pipe"),
        ("users=/nowhere", "'/nowhere', the 'users' of a zenoh bus"),
        ("config={bad}", "the 'config' of a zenoh bus, holds no settings of Zenoh"),
    ],
)
def test_a_file_that_is_none_is_named(zenoh_url: str, tmp_path: Path, options: str, why: str) -> None:
    bad = tmp_path / "bad.json5"
    bad.write_text("{ mode: 7")
    pipe = tmp_path / "pipe.pem"
    os.mkfifo(pipe)
    url = f"zenoh://me:secret1@127.0.0.1:1?{options.format(bad=bad, pipe=pipe)}"
    with pytest.raises(UserError, match=why):
        asyncio.run(create_bus(url).open())


def test_files_may_be_in_the_users_directory(zenoh_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "ours.pem").touch()
    with session_config(ZenohUrl.parse("zenoh://?users=~/ours.pem&ca=~/ours.pem")) as config:
        for name in ("auth/usrpwd/dictionary_file", "link/tls/root_ca_certificate"):
            assert config.get_json(f"transport/{name}") == json.dumps(f"{tmp_path}/ours.pem")


@pytest.mark.feature("G1")
class PanicException(BaseException):
    """As that of Zenoh's library, which can't be imported."""


def test_without_threads_for_zenoh_no_bus_is_opened(zenoh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import zenoh

    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    def panic(*_: object) -> None:
        raise PanicException("OS can't spawn worker thread")

    async def opened() -> None:
        monkeypatch.setattr(zenoh, "open", panic)
        with pytest.raises(BusError, match=r"Zenoh can't open bus .*: OS can't spawn worker thread"):
            await create_bus(zenoh_url).open()
        bus = create_bus(zenoh_url)
        monkeypatch.setattr(threading.Thread, "start", refused)
        with pytest.raises(BusError, match=r"Zenoh needs threads: .*`ulimit -u`"):
            await bus.open()

    asyncio.run(opened())
    assert all(thread.ident for thread in session._threads), "the end of the process waits for each"


def test_peers_of_a_domain_find_each_other_and_no_others(zenoh_url: str) -> None:
    async def scenario(one: Bus, other: Bus, stranger: Bus) -> None:
        got: list[tuple[str, bytes]] = []
        strange: list[str] = []
        other.subscribe(TWIST, lambda *message: got.append(message))
        other.subscribe_all(lambda *message: got.append(message))
        await until(lambda: one.has_subscribers(TWIST) and one.has_subscribers("CAMERA"))
        assert not stranger.has_subscribers(TWIST)
        stranger.subscribe_all(lambda channel, _: strange.append(channel))
        for channel in (TWIST, "CAMERA", EVENTS):
            one.publish(channel, channel.encode())
        await until(lambda: len(got) == 4)
        assert sorted(got) == sorted((name, name.encode()) for name in (TWIST, TWIST, "CAMERA", EVENTS))
        assert strange == []

    with_buses(zenoh_url, zenoh_url, f"{zenoh_url}x", scenario=scenario)


@pytest.mark.feature("G1")
def test_what_a_blueprint_makes_reliable_is_kept_for_those_who_missed_it(zenoh_url: str) -> None:
    from zenoh import Publisher
    from zenoh.ext import AdvancedPublisher

    async def main() -> None:
        bus = ZenohBus(zenoh_url, {"/goal": "reliable", "/tool_streams": "reliable"})
        await bus.open()
        for channel, kind in (
            ("/goal#geometry_msgs.PoseStamped", AdvancedPublisher),
            (TWIST, Publisher),
            (EVENTS, Publisher),
            (CANCELS, Publisher),
        ):
            assert type(bus._publisher(channel)) is kind, channel
        await bus.close()

    asyncio.run(main())


@pytest.mark.feature("G1")
def test_scouting_hears_this_machine_only(zenoh_url: str) -> None:
    address = own_address()
    before = open_fds()

    def dropped(inode: int) -> int:
        # The table comes in pieces; a row between two is left out if one before it has gone meanwhile.
        while True:
            for row in map(str.split, Path("/proc/net/udp").read_text().splitlines()[1:]):
                if int(row[9]) == inode:
                    return int(row[12])

    async def scenario(bus: Bus) -> None:
        found: list[tuple[int, int]] = []
        for fd in open_fds() - before:
            if os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                with socket.socket(fileno=os.dup(fd)) as each:
                    if each.type == socket.SOCK_DGRAM and each.getsockname()[0] == "0.0.0.0":
                        found.append((each.getsockname()[1], os.fstat(fd).st_ino))
        ((port, inode),) = found
        for source, expected in (("127.0.0.1", 0), (address, 1)):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.bind((source, 0))
                sender.sendto(b"hello", (source, port))
            await until(lambda expected=expected: dropped(inode) == expected)  # type: ignore[misc]
        assert dropped(inode) == 1

    with_buses(zenoh_url, scenario=scenario)


def own_address() -> str:
    """This machine's own, on a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine is on no network")
        return str(probe.getsockname()[0])


def test_what_is_larger_than_any_message_is_not_put_together(zenoh_url: str) -> None:
    import zenoh

    with session_config(ZenohUrl.parse(zenoh_url)) as config:
        bound = int(config.get_json("transport/link/rx/max_message_size"))
    assert MAX_MESSAGE < bound < MAX_MESSAGE + 2**20

    async def scenario(bus: Bus) -> None:
        got: list[int] = []
        bus.subscribe("/large", lambda _, data: got.append(len(data)))
        with session_config(ZenohUrl.parse(zenoh_url)) as config:
            session = await asyncio.to_thread(zenoh.open, config)
        key = KeySpace(zenoh_url.rpartition("/")[2]).key_of("/large")

        def put(size: int) -> None:
            session.put(key, bytes(size), congestion_control=zenoh.CongestionControl.BLOCK)

        def arrived() -> bool:
            put(1)
            return bool(got)

        try:
            await until(arrived)
            await asyncio.to_thread(put, MAX_MESSAGE)
            await until(lambda: got[-1] == MAX_MESSAGE)
        finally:
            await asyncio.to_thread(session.close)

    with_buses(zenoh_url, scenario=scenario)


def test_what_comes_by_another_key_than_a_channels_own_is_on_no_channel(zenoh_url: str) -> None:
    import zenoh

    async def scenario(bus: Bus) -> None:
        got: list[str] = []
        bus.subscribe_all(lambda channel, _: got.append(channel))
        with session_config(ZenohUrl.parse(zenoh_url)) as config:
            session = await asyncio.to_thread(zenoh.open, config)
        keys = KeySpace(zenoh_url.rpartition("/")[2])

        def arrived() -> bool:
            for key in ("robot1%2Fcmd_vel/geometry_msgs.Twist", "%00/a.B", "%%"):
                session.put(f"{keys.prefix}/{key}", b"forged")
            session.put(keys.key_of(TWIST), b"plain")
            return len(got) > 10

        try:
            await until(arrived)
            assert set(got) == {TWIST}
        finally:
            await asyncio.to_thread(session.close)

    with_buses(zenoh_url, scenario=scenario)


@pytest.mark.feature("G1")
@pytest.mark.parametrize("channel", [CANCELS, EVENTS, "/tool_stream_requests#dimos_streams.ToolStreamRequest"])
def test_a_forged_number_makes_nobody_deaf_to_a_publisher(zenoh_url: str, channel: str) -> None:
    import zenoh

    def forge(session: zenoh.Session, sample: zenoh.Sample) -> None:
        """Say the same in its sender's name, numbered far ahead."""
        info = sample.source_info
        if info is not None:
            info = zenoh.SourceInfo(info.source_id, (info.source_sn + 2**31 - 10) % 2**32)
        session.put(sample.key_expr, b"forged", source_info=info)

    async def scenario(one: Bus, other: Bus) -> None:
        got: list[bytes] = []
        everything: list[bytes] = []
        other.subscribe(channel, lambda _, data: got.append(data))
        other.subscribe_all(lambda _, data: everything.append(data))
        with session_config(ZenohUrl.parse(zenoh_url)) as config:
            session = await asyncio.to_thread(zenoh.open, config)
        key = KeySpace(zenoh_url.rpartition("/")[2]).key_of(channel)
        heard: list[zenoh.Sample] = []
        session.declare_subscriber(key, heard.append)

        def is_heard() -> bool:
            one.publish(channel, b"before")
            return bool(heard and got and everything)

        try:
            await until(is_heard)  # one that is published while links come about may be lost
            forge(session, heard[-1])
            await until(lambda: b"forged" in got and b"forged" in everything)
            one.publish(channel, b"cancel")
            await until(lambda: got[-1] == everything[-1] == b"cancel")
        finally:
            await asyncio.to_thread(session.close)

    with_buses(zenoh_url, zenoh_url, scenario=scenario)


def test_a_burst_of_a_tool_stream_between_peers_is_whole_and_in_order(zenoh_url: str) -> None:
    """Zenoh itself drops what there is no room for on a link; the stream asks for that again."""

    async def scenario(one: Bus, other: Bus) -> None:
        got: list[ToolEvent] = []
        publisher, receiver = ToolStreamPublisher(one), ToolStreamReceiver(other, got.extend, may_open=anybody)
        publisher.start()
        receiver.start()
        other.subscribe(STATUS, lambda _, data: receiver.on_status(decode(ModuleStatus, data)))
        beating = asyncio.create_task(beat(one, publisher))
        try:
            writer = publisher.begin("1", module="m", skill="s", caller="c", text="", data={})
            await until(lambda: got)
            for number in range(2000):
                await writer.update("", {"number": number})
            writer.close(Outcome.COMPLETED, "", {})
            await until(lambda: got[-1].type == "close")
        finally:
            beating.cancel()
            receiver.stop()
            publisher.stop()
        assert [event.data["number"] for event in got if event.type == "update"] == list(range(2000))
        assert [event.seq for event in got] == list(range(1, 2003))

    with_buses(zenoh_url, zenoh_url, scenario=scenario)


def test_a_session_leaves_no_thread_and_no_descriptor(zenoh_url: str) -> None:
    async def cycle() -> None:
        bus = create_bus(zenoh_url)
        await bus.open()
        bus.subscribe(EVENTS, lambda *_: None)
        bus.subscribe_all(lambda *_: None).close()
        bus.publish(EVENTS, b"x")
        await bus.close()

    def count() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def ended() -> bool:
        return not [thread for thread in threading.enumerate() if "zenoh" in thread.name]

    asyncio.run(cycle())
    wait_for(ended)
    before = count()
    for _ in range(3):
        asyncio.run(cycle())
    wait_for(ended)
    # A thread of the library may still have been ending before, and so may count there.
    wait_for(lambda: all(map(operator.le, count(), before)), why=lambda: (before, count()))


def test_a_process_that_forgets_to_close_ends(zenoh_url: str) -> None:
    code = (
        "import asyncio, os\n"
        "from dimos_streams.bus import create_bus\n"
        "async def main():\n"
        f"    bus = create_bus({zenoh_url!r})\n"
        "    await bus.open()\n"
        "    bus.subscribe_all(print)\n"
        "    if not os.fork():\n"
        "        try:\n"
        f"            await create_bus({zenoh_url!r}).open()\n"
        "        except Exception as error:\n"
        "            print(error, flush=True)\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "was forked from one that has used Zenoh" in ran.stdout


@pytest.mark.feature("G1")
def test_the_token_of_a_process_that_is_killed_vanishes_at_once(zenoh_url: str) -> None:
    code = (
        "import asyncio\n"
        "from dimos_streams.bus import create_bus\n"
        "async def main():\n"
        f"    bus = create_bus({zenoh_url!r})\n"
        "    await bus.open()\n"
        "    bus.declare_token('gone')()\n"
        "    bus.declare_token('one/two')\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )

    async def scenario(bus: Bus) -> None:
        seen: list[tuple[str, bool]] = []
        everything: list[str] = []
        bus.subscribe_all(lambda channel, _: everything.append(channel))
        end = bus.watch_tokens(lambda name, is_there: seen.append((name, is_there)))
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        try:
            await until(lambda: ("one/two", True) in seen, 40.0)
        finally:
            process.kill()
            await process.wait()
        killed = time.monotonic()
        await until(lambda: ("one/two", False) in seen)
        assert time.monotonic() - killed < 1.0
        assert everything == []
        end()
        end()

    with_buses(zenoh_url, scenario=scenario)


def test_a_client_whose_router_is_not_there_says_so(zenoh_url: str, free_port: int) -> None:
    began = time.monotonic()
    with pytest.raises(BusError, match=rf"nothing answers at 127\.0\.0\.1:{free_port}"):
        asyncio.run(create_bus(f"zenoh://127.0.0.1:{free_port}?mode=client").open())
    assert time.monotonic() - began < 10


def test_a_client_whose_router_has_gone_names_it_until_it_is_back(zenoh_url: str, free_port: int) -> None:
    domain = zenoh_url.rpartition("/")[2]

    async def scenario(router: Bus, client: Bus) -> None:
        assert (router.notice, client.notice) == ("", "")
        await router.close()
        await until(lambda: client.notice.startswith(f"no link to the Zenoh router at 127.0.0.1:{free_port}: "))
        await router.open()
        await until(lambda: not client.notice)

    with_buses(
        f"zenoh:///{domain}?mode=router&listen=127.0.0.1:{free_port}&scout=off",
        f"zenoh://127.0.0.1:{free_port}/{domain}?mode=client",
        scenario=scenario,
    )


def test_doctor_tells_who_takes_connections_and_lets_nobody_in(zenoh_url: str, free_port: int) -> None:
    domain = zenoh_url.rpartition("/")[2]

    async def scenario(bus: Bus) -> None:
        for password, severity in (("right1", "ok"), ("wrong1", "error")):
            url = ZenohUrl.parse(f"zenoh://robot:{password}@127.0.0.1:{free_port}/{domain}?scout=off")
            found = {finding.name: finding for finding in await check_zenoh(url)}["endpoint"]
            assert found.severity == severity, found.text
        assert "takes connections, but no link of this bus: it has no such user, password" in found.text
        texts: list[str] = []
        while not texts:  # whoever is held up answers too late for those who look around
            stranger = await check_zenoh(ZenohUrl.parse(zenoh_url))
            texts = [finding.text for finding in stranger if finding.name == "peer"]
        assert [text.partition(":")[0] for text in texts] == ["tcp/127.0.0.1"], texts
        assert "is found, but takes no link of this bus" in texts[0]

    listening = f"zenoh://robot:right1@/{domain}?listen=127.0.0.1:{free_port}"
    with_buses(listening, scenario=scenario)
    with pytest.raises(BusError, match="each process of a run listens for itself: give the port 0"):
        with_buses(listening, listening, scenario=scenario)


def test_doctor_tells_what_a_bus_of_zenoh_lacks(
    zenoh_url: str, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def findings(url: str) -> dict[str, tuple[str, str]]:
        found = asyncio.run(check_zenoh(ZenohUrl.parse(url)))
        return {finding.name: (finding.severity, finding.text) for finding in found}

    severity, text = findings(zenoh_url)["bus"]
    assert (severity, text.partition(":")[0]) == ("ok", "zenoh"), text
    assert "50 of 50 messages of 60 kB arrived" in text
    severity, text = findings(f"zenoh://127.0.0.1:{free_port}?mode=client")["endpoint"]
    assert severity == "error"
    assert text.startswith(f"127.0.0.1:{free_port} can't be reached: Connection refused")
    assert findings("zenoh://?scout=off")["bus"][0] == "warning"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "not installed" in findings(zenoh_url)["bus"][1]


def test_no_peers_are_looked_for_by_a_client_and_none_found_where_none_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import zenoh

    def fail(**_: object) -> None:
        raise zenoh.ZError("no such interface")

    monkeypatch.setattr(zenoh, "scout", fail)
    assert asyncio.run(peers_found(ZenohUrl.parse("zenoh://"))) == []
    monkeypatch.setattr("dimos_streams.cli.system.zenoh_checks.peers_found", fail)
    assert asyncio.run(_peers(ZenohUrl.parse("zenoh://127.0.0.1:7447?mode=client"))) == []


def test_doctor_says_where_peers_did_not_find_each_other(zenoh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(sender: Bus, receiver: Bus) -> tuple[float, int]:
        return float("nan"), 0

    monkeypatch.setattr("dimos_streams.cli.system.zenoh_checks.echo", nothing)
    (found,) = asyncio.run(check_zenoh(ZenohUrl.parse(zenoh_url)))
    assert found.severity == "error"
    assert "peers do not find each other at 224.0.0.224:" in found.text
    assert "ip link set lo multicast on" in found.commands


async def hears(one: Bus, other: Bus, *, within_s: float = 5.0) -> bool:
    """Whether what one bus publishes arrives at another."""
    got = asyncio.Event()
    subscription = other.subscribe("/heard", lambda *_: got.set())
    try:
        async with asyncio.timeout(within_s):
            while not got.is_set():
                one.publish("/heard", b"")
                await asyncio.sleep(0.05)
            return True
    except TimeoutError:
        return False
    finally:
        subscription.close()


@pytest.mark.feature("G1")
def test_who_does_not_know_the_password_hears_nothing(zenoh_url: str) -> None:
    domain = zenoh_url.rpartition("/")[2]

    async def scenario(one: Bus, other: Bus, wrong: Bus, without: Bus) -> None:
        assert await hears(one, other)
        assert not await hears(one, wrong, within_s=0.5)
        assert not await hears(one, without, within_s=0.5)
        assert "pass-word" not in one.url

    url = f"zenoh://robot:pass-word@/{domain}"
    with_buses(url, url, f"zenoh://robot:another1@/{domain}", zenoh_url, scenario=scenario)


@pytest.mark.feature("G1")
def test_certificates_of_another_authority_are_refused(zenoh_url: str, free_port: int, tmp_path: Path) -> None:
    domain = zenoh_url.rpartition("/")[2]
    options = {
        name: "&".join(f"{option}={path}" for option, path in certificates(tmp_path / name).items())
        for name in ("ours", "foreign")
    }

    async def scenario(listener: Bus, known: Bus, foreign: Bus) -> None:
        assert await hears(listener, known)
        assert not await hears(listener, foreign, within_s=0.5)

    with_buses(
        f"zenoh:///{domain}?listen=127.0.0.1:{free_port}&scout=off&{options['ours']}",
        f"zenoh://127.0.0.1:{free_port}/{domain}?scout=off&{options['ours']}",
        f"zenoh://127.0.0.1:{free_port}/{domain}?scout=off&{options['foreign']}",
        scenario=scenario,
    )


@pytest.mark.feature("G1")
def test_a_peer_that_hangs_delays_no_message_and_no_end(zenoh_url: str) -> None:
    code = (
        "import asyncio\n"
        "from dimos_streams.bus import create_bus\n"
        "async def main():\n"
        f"    bus = create_bus({zenoh_url!r})\n"
        "    await bus.open()\n"
        "    bus.subscribe_all(lambda *_: None)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )

    async def main() -> None:
        bus = create_bus(zenoh_url)
        await bus.open()
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        try:
            await until(lambda: bus.has_subscribers(TWIST))
            process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            for _ in range(1000):
                bus.publish("/image#sensor_msgs.Image", bytes(100_000))
                bus.publish(EVENTS, bytes(1000))
            assert time.monotonic() - began < 2, "each would wait for 5 s, or for 50 ms"
            began = time.monotonic()
            await bus.close()
            assert time.monotonic() - began < 8
        finally:
            process.kill()
            await process.wait()

    asyncio.run(main())


def test_of_two_peers_on_two_machines_one_connects() -> None:
    """After a cut both would at the same moment; on one machine, where nothing is cut, all is as it was."""
    for text, strategy in (("zenoh:///?interface=eth0&listen=10.0.0.1:0", "greater-zid"), ("zenoh://", None)):
        with session_config(ZenohUrl.parse(text)) as config:
            for how in ("multicast", "gossip"):
                assert (strategy is not None) == (
                    "greater-zid" in config.get_json(f"scouting/{how}/autoconnect_strategy")
                )


def test_without_threads_a_bus_says_what_it_cannot_read_and_leaves_nothing_when_it_is_closed(zenoh_url: str) -> None:
    async def scenario(bus: Bus) -> None:
        bus.subscribe(TWIST, lambda *_: None)
        with no_threads():
            with pytest.raises(BusError, match=r"what comes on .* can't be read: can't start new thread"):
                bus.subscribe(EVENTS, lambda *_: None)
            await bus.close()
        assert session._open == []

    with_buses(zenoh_url, scenario=scenario)
