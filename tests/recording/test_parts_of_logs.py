"""Logs are summarised, cut, exported as tables and played onto a bus."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from dimos_streams import clock
from dimos_streams.bus import create_bus
from dimos_streams.errors import MessageError, UserError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.geometry_msgs import PoseStamped, Twist, Vector3
from dimos_streams.messages.nav_msgs import Path as PathMessage
from dimos_streams.messages.sensor_msgs import Image, LaserScan
from dimos_streams.messages.std_msgs import Bool, String
from dimos_streams.recording.cut import LogPart, cut, events_of
from dimos_streams.recording.export.csv_tables import Rows, csv_lines
from dimos_streams.recording.metadata import CHANNEL, Metadata, describe, without_secrets
from dimos_streams.recording.player import Player
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.selection import Selection
from dimos_streams.recording.summary import first_metadata, summarize
from tests.helpers import run_virtual
from tests.recording.logs import START, Raw, raw, read_log, write_log

VEL = "/vel#geometry_msgs.Twist"
BOOL = "/x#std_msgs.Bool"


def log_of(folder: Path, *events: tuple[float, str, bytes]) -> Path:
    """By seconds since the start."""
    return write_log(folder / "a.lcmlog", [(START + round(at * 1e6), *rest) for at, *rest in events])  # type: ignore[misc]


def table(path: Path, wanted: str, part: LogPart | None = None) -> tuple[list[list[str]], Rows]:
    rows = Rows()
    with LogReader(path) as log:
        return list(csv.reader(csv_lines(log, wanted, part or LogPart(), rows))), rows


def test_a_table_has_a_column_for_each_number_and_json_for_the_rest(tmp_path: Path) -> None:
    poses = PathMessage(poses=[PoseStamped()])
    picture = Image(encoding="jpeg", data=b"\xff\x01")
    path = log_of(
        tmp_path,
        (0.0, BOOL, encode(Bool(data=True))),
        (1.5, VEL, encode(Twist(linear=Vector3(x=0.5, y=-1.0)))),
        (2.0, "/way#nav_msgs.Path", encode(poses)),
        (2.5, "/image#sensor_msgs.Image", encode(picture)),
        (3.0, VEL, encode(Twist())),
        (4.0, VEL, b"damaged"),
    )
    (header, first, second), rows = table(path, "/vel")
    assert header == ["log_utime", "time_s", *(f"{part}.{axis}" for part in ("linear", "angular") for axis in "xyz")]
    assert first == [str(START + 1_500_000), "1.500000", "0.5", "-1.0", "0.0", "0.0", "0.0", "0.0"]
    assert second[1] == "3.000000"
    assert (rows.written, rows.damaged) == (2, 1)
    (header, row), _ = table(path, "/way#nav_msgs.Path")
    assert "poses_length" not in header
    (pose,) = json.loads(row[header.index("poses")])
    assert pose["pose"]["position"] == {"x": 0.0, "y": 0.0, "z": 0.0}
    (header, row), _ = table(path, "/image")
    assert json.loads(row[header.index("data")]) == "/wE="
    (_, only), rows = table(path, "/vel", LogPart(from_s=2.0, to_s=3.0))
    assert (only[1], rows.written, rows.damaged) == ("3.000000", 1, 0)
    assert table(path, "/vel", LogPart(from_s=3.5))[1].damaged == 1


def test_a_matrix_of_a_fixed_size_has_a_column_an_entry(mission_log: Path) -> None:
    header, row, *_ = table(mission_log, "/odom")[0]
    assert [name for name in header if name.startswith("pose.covariance")] == [
        f"pose.covariance[{index}]" for index in range(36)
    ]
    assert len(header) == len(row)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("/x", "has several types, name one: /x#std_msgs.Bool, /x#std_msgs.String"),
        ("/velo", "did you mean '/vel'? (it has /other, /recording_metadata, /vel, /x)"),
        ("/other", "'/other#no.Type' can't be written as CSV: its type is not known here"),
    ],
)
def test_what_can_not_be_a_table(tmp_path: Path, wanted: str, why: str) -> None:
    events = [(0.0, name, b"") for name in (CHANNEL, BOOL, VEL, "/other#no.Type", "/x#std_msgs.String")]
    with pytest.raises(UserError, match=re.escape(why)):
        table(log_of(tmp_path, *events), wanted)


def test_a_summary_counts_channels_gaps_and_what_goes_back(tmp_path: Path) -> None:
    times = [
        (0.0, "a"),
        (0.1, "b"),
        (0.5, "b"),
        (0.4, "b"),
        (1.5, "a"),
        (4.0, "b"),
        (4.1, "b"),
        (4.2, "a"),
        (5.2, "a"),
    ]
    paths = [
        write_log(
            tmp_path / f"{number}.lcmlog", [(START + round(at * 1e6), f"/{name}", b"12345") for at, name in half]
        )
        for number, half in enumerate((times[:4], times[4:]))
    ]
    progress: list[Path] = []
    with LogReader(paths[0]) as one, LogReader(paths[1]) as two:
        summary = summarize([one, two], lambda log: progress.append(log.path))
    assert set(progress) == set(paths)
    a, b = summary.channels["/a"], summary.channels["/b"]
    assert (summary.events, summary.first, summary.last, summary.span_s) == (9, START, START + 5_200_000, 5.2)
    assert (a.count, a.size, b.count, b.backwards, a.backwards) == (4, 20, 5, 1, 0)
    assert a.rate_hz == pytest.approx(3 / 5.2)
    assert b.rate_hz == pytest.approx(1.0)
    assert (b.longest, b.longest_at - START) == (3_500_000, 500_000)
    assert summary.gaps == [(START + 1_500_000, 2_500_000)], "a second is no gap"
    assert b.to_dict(START) == {
        "channel": "/b", "type": "", "known": False, "messages": 5, "bytes": 25, "rate_hz": 1.0,
        "first_s": 0.1, "last_s": 4.1, "longest_gap": {"seconds": 3.5, "at_s": 0.5}, "backwards": 1,
    }  # fmt: skip
    assert (a.gap_s, summary.metadata) == (None, None), "slow all the time is no gap"


def test_two_messages_at_once_have_no_rate(tmp_path: Path) -> None:
    with LogReader(log_of(tmp_path, (1.0, "/a", b"1"), (1.00001, "/a", b"2"))) as log:
        assert summarize([log]).channels["/a"].rate_hz is None


def test_one_message_has_no_rate_and_its_type_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = log_of(tmp_path, (1.0, CHANNEL, b"of somebody else"), (2.0, "PLAIN", encode(Bool(data=True))))
    with LogReader(path) as log:
        summary, metadata = summarize([log]), first_metadata(log)
    assert (summary.metadata, metadata) == (None, None)
    reported = summary.channels["PLAIN"].to_dict(summary.first)
    assert (reported["type"], reported["known"], reported["rate_hz"], reported["longest_gap"]) == (
        "std_msgs.Bool",
        True,
        None,
        None,
    )
    assert (summary.first, summary.span_s) == (START + 2_000_000, 0.0)


def test_a_part_keeps_what_belongs_to_it_under_its_new_names(tmp_path: Path) -> None:
    metadata = describe(seed=5, mode="live").encoded()
    events = [(-9.0, CHANNEL, metadata), *((float(at), name, b"") for at in range(5) for name in (VEL, BOOL, "/y"))]
    path = log_of(tmp_path, *events)
    remap = {"/vel": "/robot/vel", BOOL: "/b#other.Type", "/y": "/z"}
    part = LogPart(selection=Selection(exclude=["/n*"]), from_s=1.0, to_s=3.0, remap=remap)
    with LogReader(path) as log:
        assert cut([log], tmp_path / "b.lcmlog", part).events == 9, "without the metadata"
        assert part.unused() == []
        with pytest.raises(UserError, match="is the log itself"):
            cut([log], path, part)
        for wrong, why in (
            (LogPart(from_s=4.5), r"it ends after 4\.000 s"),
            (LogPart(selection=Selection(include=["/nothing"])), "no event is of '/nothing'"),
            (LogPart(from_s=1.1, to_s=1.9), "the channels have no event at that time"),
            (LogPart(remap={"/vel": "/" + "v" * 999}), r"channel '/v+.*' has 10\d\d bytes; valid: at most 999"),
        ):
            with pytest.raises(UserError, match=why):
                cut([log], tmp_path / "c.lcmlog", wrong)
    short = write_log(tmp_path / "short.lcmlog", [(START, VEL, b""), (START + 500_000, VEL, b"")])
    with LogReader(short) as log, pytest.raises(UserError, match=r"it ends after 0\.500 s"):
        cut([log], tmp_path / "c.lcmlog", LogPart(from_s=0.7))
    first, *rest = read_log(tmp_path / "b.lcmlog")
    assert (first.channel, first.utime) == (CHANNEL, START + 1_000_000)
    assert Metadata.decoded(first.data).channels[0].exclude == ("/n*",)
    expected: list[Raw] = [
        (START + at * 1_000_000, name, b"")
        for at in (1, 2, 3)
        for name in ("/robot/vel#geometry_msgs.Twist", "/b#other.Type", "/z")
    ]
    assert raw(rest) == expected
    assert not (tmp_path / "c.lcmlog").exists()
    with LogReader(tmp_path / "b.lcmlog") as made:
        assert summarize([made]).events == 9, "as `recording info` counts them"


def test_selections() -> None:
    chosen = Selection(include=["/a*", "*#std_msgs.Bool"], exclude=["/ab", "/b#*"])
    asked = {"/a": True, "/abc#x.Y": True, "/ab#x.Y": False, BOOL: True, "/b#std_msgs.Bool": False, "/c": False}
    assert {channel: chosen(channel) for channel in asked} == asked
    assert chosen.asked == tuple(asked)
    assert chosen.unused() == []
    assert Selection(include=["/a", "/b"]).unused() == ["/a", "/b"]


def test_metadata_has_no_secrets_and_is_narrowed_with_the_recording() -> None:
    plain = {"token": "s3cret", "url": "http://me:word@host/x", "list": [{"api_key": "k", "n": 1}], "pair": (1, None)}
    assert without_secrets(plain) == {"url": "http://host/x", "list": [{"n": 1}], "pair": [1, None]}
    whole = describe(seed=3)
    assert (whole.channels, whole.blueprint, whole.narrowed(Selection())) == ((), None, whole)
    for selection in (Selection(include=["/a"]), Selection(exclude=["/b"])):
        recorded = whole.narrowed(selection).narrowed(Selection(exclude=["/c"])).selected()
        assert (recorded("/a"), recorded("/b"), recorded("/c")) == (True, False, False)
    with pytest.raises(MessageError, match="no metadata"):
        Metadata.decoded(encode(String(data='{"seed": "x", "mode": 3}')))


def test_the_seconds_of_a_part_go_on_where_the_clock_was_set_back(tmp_path: Path) -> None:
    path = log_of(tmp_path, (20.0, "/a", b"0"), (21.0, "/a", b"1"), (1.0, "/a", b"2"), (2.0, "/a", b"3"))
    with LogReader(path) as log:
        assert [event.data for event in events_of([log], LogPart())] == [b"0", b"1", b"2", b"3"]
    with LogReader(path) as log:
        assert cut([log], tmp_path / "cut.lcmlog", LogPart()).events == 4
    with LogReader(path) as log:
        assert [event.data for event in events_of([log], LogPart(from_s=0.5))] == [b"1", b"2", b"3"]
    with LogReader(path) as log:
        assert [event.data for event in events_of([log], LogPart(to_s=1.5))] == [b"0", b"1", b"2"]
    with LogReader(tmp_path / "cut.lcmlog") as log:
        assert [event.utime - START for event in log.events()] == [20_000_000, 21_000_000, 1_000_000, 2_000_000]


def test_a_summary_says_where_the_clock_goes_back_and_counts_on(tmp_path: Path) -> None:
    back = -3_600_000_000
    times = [0, 100_000, 200_000, 150_000, back + 300_000, back + 400_000, back + 900_000_000, back + 500_000]
    paths = [
        write_log(tmp_path / f"{name}.lcmlog", [(START + time, "/a", b"1") for time in part])
        for name, part in (("one", times[:4]), ("two", times[4:]))
    ]
    with LogReader(paths[0]) as one, LogReader(paths[1]) as two:
        summary = summarize([one, two])
    assert [str(found) for found in summary.set_backs] == ["the clock goes back by 3599.9 s at event 0"]
    assert (summary.first, summary.channels["/a"].backwards) == (START, 2), (
        "one came late, one before a damaged stamp"
    )


def test_one_damaged_stamp_sets_no_clock_back(tmp_path: Path) -> None:
    for bit in (22, 40, 62):
        times = [START + 100_000 * number for number in range(6)]
        times[3] ^= 1 << bit
        with LogReader(write_log(tmp_path / f"{bit}.lcmlog", [(time, "/a", b"1") for time in times])) as log:
            assert summarize([log]).set_backs == []


def test_playing_keeps_the_pace(tmp_path: Path) -> None:
    path = log_of(
        tmp_path, (0.0, "/a", b"0"), (0.0, "LCM_SELF_TEST", b""), (1.0, "/" + 63 * "x", b""),
        (2.0, VEL, b"1"), (2.0, "/a", b"2"),
    )  # fmt: skip

    async def scenario(speed: float) -> tuple[list[tuple[float, bytes]], Player, int]:
        got: list[tuple[float, bytes]] = []
        bus = create_bus("memq://")
        await bus.open()
        bus.subscribe_all(lambda _, data: got.append((round(clock.monotonic(), 3), data)))
        with LogReader(path) as log:
            player = Player([log], LogPart(), speed=speed)
            count = await player.play(bus)
            count += await player.play(bus, lambda player: progress.append((player.published, player.after_s)))
        await bus.close()
        return got, player, count

    progress: list[tuple[int, float]] = []
    got, player, count = run_virtual(scenario(4.0))
    assert progress == [(5, 2.0)], "whenever it has waited"
    assert got[:2] == [(0.0, b"0"), (0.5, b"1")]
    assert (count, player.published, player.after_s) == (6, 6, 2.0)
    assert (player.untyped, list(player.channels)) == ({"/a": 4}, ["/a", VEL])
    assert player.unpublishable == {"/" + 63 * "x": 2}
    for speed in (0.0, -1.0, float("nan")):
        with pytest.raises(UserError, match="speed is a factor above 0"):
            Player([], LogPart(), speed=speed)


def test_a_writer_says_what_it_can_not_write(tmp_path: Path) -> None:
    for channel in ("", "x" * 1000, "ä" * 500):
        with pytest.raises(ValueError, match="a log's channel name has 1 to 999 bytes"):
            write_log(tmp_path / "b.lcmlog", [(START, channel, b"")])
    longest: list[Any] = [(START, "x" * 999, b"1"), (START, "y", b"2")]
    assert raw(read_log(write_log(tmp_path / "c.lcmlog", longest))) == longest


def test_the_json_of_a_table_has_null_for_numbers_that_json_has_not(tmp_path: Path) -> None:
    scan = encode(LaserScan(ranges=[1.0, math.inf, math.nan]))
    (header, row), _ = table(
        write_log(tmp_path / "a.lcmlog", [(START, "/scan#sensor_msgs.LaserScan", scan)]), "/scan"
    )
    assert row[header.index("ranges")] == "[1.0, null, null]"


def test_a_part_knows_nothing_of_the_channels_of_other_logs(tmp_path: Path) -> None:
    for name in ("/old", "/new"):
        with LogReader(write_log(tmp_path / "log.lcmlog", [(START, name, b"")])) as log:
            part = LogPart(remap={"/old": "/x"})
            found = [event.channel for event in events_of([log], part)]
    assert found == ["/new"]
    assert part.unused() == ["no topic is called '/old'"]
