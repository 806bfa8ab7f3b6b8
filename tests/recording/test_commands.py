"""The commands: run --record, recording info, cut and export, replay."""

from __future__ import annotations

import csv
import html
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.messages import registry
from dimos_streams.messages.codec import encode
from dimos_streams.messages.geometry_msgs import Twist, Vector3
from dimos_streams.messages.std_msgs import String
from dimos_streams.recording import summary
from dimos_streams.recording.metadata import CHANNEL, Metadata, describe
from dimos_streams.recording.reader import LogReader
from tests.recording.logs import START, raw, read_log, write_log

PICTURE = b"\x89PNG"


@pytest.mark.slow
def test_run_records_and_info_shows_it(tmp_path: Path, command: Any) -> None:
    path = tmp_path / "a.lcmlog"
    arguments = ("run", "base-robot", "--virtual-time", "--duration", "2", "--seed", "3", "--record", path)
    chosen = ("--record-without", "*#sensor_msgs.Image", "--record-split", "0.06")
    assert command(*arguments, *chosen)[0] == 0
    parts = sorted(tmp_path.iterdir())
    assert [part.name for part in parts] == ["a.1.lcmlog", "a.2.lcmlog", "a.lcmlog"]
    code, out, _ = command("recording", "info", parts[2], parts[0], parts[1], "--json")
    assert code == 0
    reported = json.loads(out)
    channels = {channel["channel"]: channel for channel in reported["channels"]}
    assert channels["/odom#nav_msgs.Odometry"]["messages"] == 40
    assert channels["/odom#nav_msgs.Odometry"]["rate_hz"] == 20.0
    assert reported["metadata"]["seed"] == 3
    assert reported["metadata"]["mode"] == "virtual"
    assert reported["metadata"]["blueprint"]["name"] == "base-robot"
    assert {"python", "numpy", "processor"} <= reported["metadata"]["environment"].keys()
    assert not any("Image" in channel for channel in channels)
    assert command(*arguments)[0] == 0
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "what", "fitting"),
    [
        ("--record-without", "leaves nothing out", ("*#sensor_msgs.Image", "/module_*", "/detections")),
        ("--record-channels", "records nothing", ("*#nav_msgs.Odometry", "/odom")),
    ],
)
def test_run_says_at_its_beginning_which_pattern_fits_nothing(
    option: str, what: str, fitting: tuple[str, ...], tmp_path: Path, command: Any
) -> None:
    arguments = ("run", "robot-only", "--virtual-time", "--duration", "0.1", "--record", tmp_path / "a.lcmlog")
    patterns = ("/detectons", "*#sensor_msgs.Imag", *fitting)
    code, _, err = command(*arguments, *(word for pattern in patterns for word in (option, pattern)))
    said = f"{option} {{!r}} {what}: no channel of the blueprint fits it{{}}"
    assert code == 0
    assert [line for line in err.splitlines() if what in line] == [
        said.format("/detectons", "; did you mean '/detections'?"),
        said.format("*#sensor_msgs.Imag", ""),
    ]


def test_info_shows_gaps_and_damage(tmp_path: Path, command: Any) -> None:
    times = [0, 100_000, 200_000, 300_000, 6_300_000, 6_400_000]
    path = write_log(tmp_path / "a.lcmlog", [(START + time, "/x#std_msgs.Bool", b"12345678") for time in times])
    path.write_bytes(path.read_bytes() + b"garbage")
    code, out, err = command("recording", "info", path)
    assert code == 0
    assert "6.00 s after 0.3 s" in out
    assert "nothing at all was recorded for 6.0 s after 0.3 s" in out
    assert "7 bytes at 312" in err
    reported = json.loads(command("recording", "info", path, "--json")[1])
    assert reported["damage"] == [
        {"file": str(path), "offset": 312, "length": 7, "why": "the log ends inside an event"}
    ]


def test_channels_beyond_a_bound_are_counted_together(
    tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary, "MAX_CHANNELS", 2)
    names = ["/a", "/b", "/c/odom", "/d/odom", "/a"]
    events = [(START + 100_000 * number, name, b"12345678") for number, name in enumerate(names)]
    path = write_log(tmp_path / "a.lcmlog", events)
    code, out, err = command("recording", "info", path)
    assert (code, err) == (0, "")
    assert "5 events" in out
    assert "2 further events are of other channels than the first 2: they are only counted, 16 B in all" in out
    assert "/c" not in out
    reported = json.loads(command("recording", "info", path, "--json")[1])
    assert [channel["channel"] for channel in reported["channels"]] == ["/a", "/b"]
    assert reported["beyond"] == {"messages": 2, "bytes": 16}
    assert reported["span_s"] == 0.4
    assert command("recording", "report", path, "-o", tmp_path / "a.html")[0] == 0
    page = (tmp_path / "a.html").read_text()
    assert "2 messages are of other channels than the first 2, and are only counted." in page
    assert "/c" not in page


def test_info_names_all_runs_of_which_a_log_has_something(tmp_path: Path, command: Any) -> None:
    first, second = (Metadata(blueprint={"name": name}, mode="live", seed=3, version="1") for name in ("ant", "bee"))
    said = [(CHANNEL, each.encoded()) for each in (first, first, second, second)]
    events = [(START + n, *each) for n, each in enumerate([*said, ("/x#std_msgs.Bool", b"12345678")])]
    path = write_log(tmp_path / "a.lcmlog", events)
    lines = command("recording", "info", path)[1].splitlines()
    assert lines[2] == "blueprint ant, live run, seed 3, version 1"
    assert lines[3].startswith("and blueprint bee, live run, seed 3, version 1: a log of several runs")
    assert not any("blueprint" in line for line in lines[4:])
    assert json.loads(command("recording", "info", path, "--json")[1])["other_runs"] == [second.title]


def test_info_says_where_the_clock_goes_back(tmp_path: Path, command: Any) -> None:
    times = [0, 100_000, 200_000, -3_599_800_000, -3_599_700_000]
    path = write_log(tmp_path / "a.lcmlog", [(START + time, "/x#std_msgs.Bool", b"12345678") for time in times])
    code, out, _ = command("recording", "info", path)
    assert code == 0
    assert "the clock goes back by 3600.0 s at event 3" in out
    assert "0.300 s from 2020-09-13" in out
    assert "; times are counted on from there, 0.2 s after the beginning" in out
    reported = json.loads(command("recording", "info", path, "--json")[1])
    assert reported["clock_set_back"] == [{"event": 3, "seconds": 3600.0}]


def test_info_and_report_say_where_logs_that_were_put_together_meet(tmp_path: Path, command: Any) -> None:
    part = write_log(tmp_path / "a.lcmlog", [(START + 1_000_000 * number, "/x", b"") for number in range(8)])
    both = tmp_path / "both.lcmlog"
    both.write_bytes(part.read_bytes() * 2)
    assert (
        "at event 0; times are counted on from there, 7.0 s after the beginning"
        in command("recording", "info", both)[1]
    )
    assert command("recording", "report", both, "-o", tmp_path / "a.html")[0] == 0
    assert "at event 0; its times go on from there, at 0:07." in (tmp_path / "a.html").read_text()


def test_parts_that_are_not_in_order_are_noted(tmp_path: Path, command: Any) -> None:
    first, tenth, second, other = (
        write_log(tmp_path / f"a{name}.lcmlog", [(START, "/x", b"")]) for name in ("", ".10", ".2", ".b")
    )
    for in_order in ([first, second, tenth, other], [second, second]):
        assert "in order" not in command("recording", "info", *in_order)[2]
    for files in ((tenth, second), (second, first), (other, tenth, first)):
        noted = command("recording", "info", *files)[2]
        assert f"{files[-1]} was recorded before {files[-2]}, by their names: name parts in order" in noted


def test_info_and_report_say_that_stamps_are_impossible(tmp_path: Path, command: Any) -> None:
    times = [0, 100_000, 100_000_000, 300_000, 400_000]
    path = write_log(tmp_path / "a.lcmlog", [(START + time, "/x", b"") for time in times])
    said = "event 2 is 99.9 s ahead of its neighbours"
    assert f"{said}; it keeps its time" in command("recording", "info", path)[1]
    assert command("recording", "report", path, "-o", tmp_path / "a.html")[0] == 0
    assert f"In the log {said}." in (tmp_path / "a.html").read_text()


def test_info_and_report_say_for_how_many_single_events_the_clock_goes_back(tmp_path: Path, command: Any) -> None:
    times = [0, 100_000, -3_600_000_000, 300_000, 400_000, 350_000, 600_000]
    path = write_log(tmp_path / "a.lcmlog", [(START + time, "/x#std_msgs.Bool", b"12345678") for time in times])
    said = "the clock goes back for 2 events, by 3600.1 s at most, first at event 2"
    assert said in command("recording", "info", path)[1]
    assert command("recording", "report", path, "-o", tmp_path / "a.html")[0] == 0
    assert said in (tmp_path / "a.html").read_text()
    assert json.loads(command("recording", "info", path, "--json")[1])["channels"][0]["backwards"] == 2


def test_info_and_report_say_that_what_a_log_says_of_itself_is_damaged(tmp_path: Path, command: Any) -> None:
    path = write_log(tmp_path / "a.lcmlog", [(START, CHANNEL, describe().encoded()[:-9]), (START, "/x", b"")])
    said = "hat the log says of itself can't be read: it ends after"
    code, out, _ = command("recording", "info", str(path))
    assert code == 0
    assert f"\nw{said}" in out
    assert command("recording", "report", str(path), "-o", str(tmp_path / "a.html"))[0] == 0
    assert f"W{said}" in html.unescape((tmp_path / "a.html").read_text())


def test_info_of_what_has_no_event_is_an_error(tmp_path: Path, command: Any) -> None:
    (tmp_path / "empty.lcmlog").touch()
    for path in (tmp_path / "empty.lcmlog", "/proc/version"):
        for form in ([], ["--json"]):
            assert command("recording", "info", path, *form) == (
                2,
                "",
                f"error: there is no event in {str(path)!r}\n",
            )


@pytest.mark.parametrize(
    "words", [("cut", "-o"), ("report", "-o"), ("export", "--mcap"), ("export", "--csv", "/x", "-o")]
)
def test_no_file_is_called_as_programs_call_standard_output(
    words: tuple[str, ...], tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_log(tmp_path / "a.lcmlog", [(START, "/x#std_msgs.Bool", b"12345678")])
    assert command("recording", words[0], path, *words[1:], "-") == (
        2,
        "",
        "error: '-' is no name of a file: give one\n",
    )
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_cut_and_rename(mission_log: Path, tmp_path: Path, command: Any) -> None:
    path = tmp_path / "part.lcmlog"
    part = ("--from", "2", "--to", "4", "--channels", "/odom", "--channels", "/module_status")
    assert command("recording", "cut", mission_log, "-o", path, *part, "--remap", "/odom=/robot1/odom")[0] == 0
    reported = json.loads(command("recording", "info", path, "--json")[1])
    channels = {channel["channel"]: channel for channel in reported["channels"]}
    assert set(channels) == {"/robot1/odom#nav_msgs.Odometry", "/module_status#dimos_streams.ModuleStatus"}
    assert channels["/robot1/odom#nav_msgs.Odometry"]["messages"] == 41
    assert reported["span_s"] == pytest.approx(2.0, abs=0.02)
    assert reported["metadata"]["seed"] == 7
    statuses = [event for event in raw(read_log(path)) if event[1].startswith("/module_status")]
    assert any(b"look_out_for" in data for _, _, data in statuses), "the skills that were offered before are kept"


@pytest.mark.slow
def test_a_cut_log_can_be_replayed(mission_log: Path, tmp_path: Path, command: Any) -> None:
    path = tmp_path / "part.lcmlog"
    assert command("recording", "cut", mission_log, "-o", path, "--from", "8.3")[0] == 0
    assert command("replay", path, "--modules", "lookout,drive")[0] == 0


def test_export_as_csv(mission_log: Path, tmp_path: Path, command: Any) -> None:
    code, out, _ = command("recording", "export", mission_log, "--csv", "/skill_vel")
    assert code == 0
    rows = list(csv.DictReader(out.splitlines()))
    assert len(rows) > 50
    assert set(rows[0]) >= {"log_utime", "time_s", "linear.x", "angular.z"}
    assert float(rows[0]["time_s"]) == pytest.approx(1.2, abs=0.1)
    path = tmp_path / "detections.csv"
    assert command("recording", "export", mission_log, "--csv", "/detections", "-o", path)[0] == 0
    first = next(csv.DictReader(path.read_text().splitlines()))
    assert json.loads(first["detections"])[0]["results"][0]["hypothesis"]["score"] == 1.0


FORMULAS = ("=HYPERLINK(A1)", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "=1,2", '="a"')
PLAIN = ("", "a=1", " =1", "'", "ann", "1e3")


@pytest.mark.feature("F6")
def test_in_csv_no_text_is_a_formula_and_numbers_stay(tmp_path: Path, command: Any) -> None:
    texts = [encode(String(data=text)) for text in (*FORMULAS, *PLAIN)]
    log = [(START + at, "/said#std_msgs.String", text) for at, text in enumerate(texts)]
    driven = (START + 100, "/cmd_vel#geometry_msgs.Twist", encode(Twist(linear=Vector3(x=-0.5))))
    stray = (START - 1_000_000, *driven[1:])
    path = write_log(tmp_path / "a.lcmlog", [*log, driven, stray])
    table = tmp_path / "a.csv"
    assert command("recording", "export", path, "--csv", "/said", "-o", table)[0] == 0
    with table.open(newline="") as lines:
        cells = [row["data"] for row in csv.DictReader(lines)]
    assert cells == [*(f"'{text}" for text in FORMULAS), *PLAIN]
    assert command("recording", "export", path, "--csv", "/said")[1] == table.read_bytes().decode()
    _, out, _ = command("recording", "export", path, "--csv", "/cmd_vel")
    row, earlier = csv.DictReader(out.splitlines())
    assert (row["linear.x"], row["time_s"], earlier["time_s"]) == ("-0.5", "0.000100", "-1.000000")


def test_what_has_a_time_that_mcap_has_not_is_left_out_and_listed(
    mission_log: Path, tmp_path: Path, command: Any
) -> None:
    from mcap.reader import make_reader

    events = raw(read_log(mission_log))
    channel = "/odom#nav_msgs.Odometry"
    odometry = next(data for _, name, data in events if name == channel)
    before, behind = ((utime, channel, odometry) for utime in (-1, 2**62))
    log = write_log(tmp_path / "strange.lcmlog", [before, *events[:50], behind, *events[50:100]])
    code, out, err = command("recording", "export", log, "--mcap", tmp_path / "a.mcap")
    assert code == 0
    assert f"left out, because MCAP has no such time: {channel} (2)\n" in err
    assert "damaged" not in out + err
    with (tmp_path / "a.mcap").open("rb") as file:
        times = [message.log_time // 1000 for _, _, message in make_reader(file).iter_messages()]
    assert set(times) <= {utime for utime, _, _ in events}
    assert times


def test_what_is_left_out_of_an_mcap_file_is_listed_by_the_reason(tmp_path: Path, command: Any) -> None:
    twist, unknown, plain = "/cmd_vel#geometry_msgs.Twist", "/moisture#garden_msgs.Moisture", "/plain"
    near = "/moist#geometry_msgs.Twists"
    events = [(twist, encode(Twist())), (twist, b"x"), (unknown, b"1"), (unknown, b"2"), (plain, b""), (near, b"")]
    log = write_log(tmp_path / "a.lcmlog", [(START + at, *event) for at, event in enumerate(events)])
    code, _, err = command("recording", "export", log, "--mcap", tmp_path / "a.mcap")
    assert code == 0
    _, of_csv = command("recording", "export", log, "--csv", unknown)[2].rstrip().split("its type is not known here")
    assert of_csv.startswith("; types of other packages are known by an entry point in")
    assert err.splitlines()[1:] == [
        f"left out, because their types are not known here: {unknown} (2){of_csv}",
        f"left out, because their types are not known here: {plain} (1)",
        f"left out, because their types are not known here: {near} (1); did you mean 'geometry_msgs.Twist'?",
        f"left out, because they are of another definition of their type, or damaged: {twist} (1)",
    ]


def test_a_misspelt_package_of_messages_is_an_error_where_a_type_is_not_known(
    tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(registry.VARIABLE, "gardn")
    twist, unknown = "/cmd_vel#geometry_msgs.Twist", "/moisture#garden_msgs.Moisture"
    log = write_log(tmp_path / "a.lcmlog", [(START, twist, encode(Twist())), (START + 1, unknown, b"1")])
    for how in (["--csv", unknown], ["--mcap", tmp_path / "a.mcap"]):
        code, _, err = command("recording", "export", log, *how)
        assert code == 2
        assert "its type is not known here; DIMOS_STREAMS_MESSAGES: there is no Python module 'gardn'" in err
    assert not (tmp_path / "a.mcap").exists()
    assert command("recording", "export", log, "--mcap", tmp_path / "a.mcap", "--without", "/moisture")[0] == 0


def test_the_times_of_an_mcap_file_go_on_where_the_clock_was_set_back(tmp_path: Path, command: Any) -> None:
    from mcap.reader import make_reader

    twist = encode(Twist())
    hour = 3_600_000_000
    times = [START + 100_000 * number - hour * (number >= 5) for number in range(10)]
    log = write_log(tmp_path / "back.lcmlog", [(time, "/cmd_vel#geometry_msgs.Twist", twist) for time in times])
    assert command("recording", "export", log, "--mcap", tmp_path / "a.mcap")[0] == 0
    with (tmp_path / "a.mcap").open("rb") as file:
        found = [message.log_time // 1000 for _, _, message in make_reader(file).iter_messages(log_time_order=False)]
    assert found == [*times[:5], *(time + hour - 100_000 for time in times[5:])]


@pytest.mark.slow
def test_export_as_mcap_is_what_foxglove_reads(picture_log: Path, tmp_path: Path, command: Any) -> None:
    import base64

    import jsonschema
    from mcap.reader import make_reader

    path = tmp_path / "a.mcap"
    code, out, _ = command("recording", "export", picture_log, "--mcap", path)
    assert code == 0
    assert str(path) in out
    seen: dict[str, dict[str, Any]] = {}
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            assert schema is not None
            assert (schema.encoding, channel.message_encoding) == ("jsonschema", "json")
            if channel.topic in seen:
                continue
            value = json.loads(message.data)
            jsonschema.validate(value, json.loads(schema.data))
            seen[channel.topic] = {"schema": schema.name, "value": value, "utime": message.log_time // 1000}
    kinds = {topic: one["schema"] for topic, one in seen.items()}
    assert kinds["/color_image"] == "foxglove.CompressedImage"
    assert kinds["/depth_image"] == "foxglove.RawImage"
    assert kinds["/odom/pose"] == "foxglove.PoseInFrame"
    assert kinds["/tf"] == "foxglove.FrameTransforms"
    assert kinds["/scan"] == "foxglove.LaserScan"
    assert kinds["/camera_info"] == "foxglove.CameraCalibration"
    assert kinds["/detections/boxes"] == "foxglove.ImageAnnotations"
    assert kinds["/tool_streams/log"] == "foxglove.Log"
    assert kinds["/tool_streams"] == "dimos_streams.ToolStreamEvent"
    assert seen["/tool_streams"]["value"]["data"]["arguments"]["descriptions"] == ["a person in a red shirt"]
    picture = base64.b64decode(seen["/color_image"]["value"]["data"])
    assert picture[:2] == b"\xff\xd8"
    assert seen["/odom/pose"]["value"]["pose"]["orientation"]["w"] != 0


@pytest.mark.feature("F3")
@pytest.mark.slow
def test_replay_tests_modules_and_exits_by_the_result(mission_log: Path, tmp_path: Path, command: Any) -> None:
    assert command("replay", mission_log, "--modules", "follow,lookout")[0] == 0
    picture = tmp_path / "a.png"
    changed = ("--modules", "follow", "--set", "follow.distance_gain=1.32")
    code, out, _ = command("replay", mission_log, *changed, "--plot", picture)
    assert code == 1
    assert "first difference after" in out
    assert picture.read_bytes().startswith(PICTURE)
    assert command("replay", mission_log, *changed, "--tolerance", "linear=0.2", "--tolerance", "data=0.2")[0] == 0
    code, out, said = command("replay", mission_log, *changed, "--json", "--plot", tmp_path / "nowhere" / "a.png")
    assert (code, said.startswith("no picture: ")) == (1, True), "the result counts"
    reported = json.loads(out)
    assert reported["passed"] is False
    assert reported["first"]["stream"] == "/skill_vel#geometry_msgs.Twist"
    golden = tmp_path / "golden.lcmlog"
    shutil.copy(mission_log, golden)
    assert command("replay", golden, *changed, "--update")[0] == 0
    assert command("replay", golden, *changed)[0] == 0


@pytest.mark.slow
def test_tolerances_come_from_a_file(mission_log: Path, tmp_path: Path, command: Any) -> None:
    path = tmp_path / "tolerances.yaml"
    path.write_text("fields:\n  linear: 0.2\n  data: 0.2\n")
    changed = ("--modules", "follow", "--set", "follow.distance_gain=1.32")
    assert command("replay", mission_log, *changed, "--tolerances", path)[0] == 0
    path.write_text("fields:\n  linear: wide\n")
    code, _, err = command("replay", mission_log, *changed, "--tolerances", path)
    assert code == 2
    assert "fields.linear" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recording", "info", "missing.lcmlog"], "No such file"),
        (["recording", "export", "LOG"], "--mcap OUT or --csv CHANNEL"),
        (["recording", "export", "LOG", "--csv", "/odm"], "did you mean '/odom'"),
        (["recording", "cut", "LOG", "-o", "LOG"], "is the log itself"),
        (["recording", "info", __file__], "is no LCM log"),
        (["replay", __file__, "--modules", "follow"], "is no LCM log"),
        (["recording", "export", "LOG", "--mcap", "LOG"], "is the log itself"),
        (["recording", "export", "LOG", "--csv", "/odom", "-o", "LOG"], "is the log itself"),
        (["recording", "export", "LOG", "--mcap", "b", "--channels", "/odm"], "did you mean '/odom'"),
        (["recording", "export", "LOG", "--csv", "/odom", "--from", "99", "-o", "b"], "it ends after 12."),
        (["recording", "cut", "LOG", "-o", "b", "--channels", "/odm"], "did you mean '/odom'"),
        (
            ["recording", "cut", "LOG", "-o", "b", "--channels", "/skill_calls", "--from", "12"],
            "no event at that time",
        ),
        (["recording", "cut", "LOG", "-o", "b", "--remap", "/odom"], "expected TOPIC=TOPIC"),
        (["replay", "LOG", "--channels", "/odm", "--bus", "memq://"], "did you mean '/odom'"),
        (["recording", "cut", "LOG", "-o", "b", "--from", "3", "--to", "2"], "before --from"),
        (["replay", "LOG", "--speed", "0"], "above 0"),
        (["replay", "LOG", "--exact"], "--exact goes with --modules"),
        (["replay", "LOG", "--seed", "0"], "--seed goes with --modules"),
        (["replay", "LOG", "--time-tolerance", "0"], "--time-tolerance goes with --modules"),
        (["replay", "LOG", "--json"], "--json goes with --modules"),
        (["replay", "LOG", "--modules", "follow", "--from", "0"], "tested with one whole log"),
        (["replay", "LOG", "--modules", "follow", "--speed", "1"], "--speed is for playing a log onto a bus"),
        (["replay", "LOG", "--modules", "follow", "--bus", "memq://"], "--bus is for playing a log onto a bus"),
        (["replay", "LOG", "--modules", "folow"], "did you mean 'follow'"),
        (
            ["replay", "LOG", "--modules", "follow", "--time-tolerance", "inf"],
            "--time-tolerance inf: the seconds must be finite",
        ),
        (["replay", "LOG", "--modules", "follow", "--loop"], "--loop is for playing a log onto a bus"),
        (["replay", "LOG", "--modules", "follow", "--tolerance", "linear.x"], "expected a number"),
        (["run", "base-robot", "--record-split", "1"], "go with --record"),
        (["run", "base-robot", "--virtual-time", "--duration", "1", "--record", "/nowhere/a"], "can't be written"),
    ],
)
def test_mistakes_are_one_line(
    mission_log: Path,
    command: Any,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = command(*[str(mission_log) if part == "LOG" else part for part in arguments])
    assert code == 2
    assert list(tmp_path.iterdir()) == []
    assert len(err.splitlines()) == 1
    assert message in err


def test_names_that_fit_nothing_are_reported(mission_log: Path, tmp_path: Path, command: Any) -> None:
    part = ("--channels", "/odom", "--channels", "/sacn", "--remap", "/odom=/pose", "--remap", "/scn=/a")
    reported = ["no event is of '/sacn'", "no topic is called '/scn'"]
    for arguments in (
        ("recording", "cut", mission_log, "-o", tmp_path / "a.lcmlog"),
        ("replay", mission_log, "--speed", "1000", "--bus", "memq://"),
    ):
        code, _, err = command(*arguments, *part)
        assert code == 0
        assert [line.partition(";")[0] for line in err.splitlines()] == reported


def test_csv_leaves_damaged_messages_out(mission_log: Path, tmp_path: Path, command: Any) -> None:
    events = raw(read_log(mission_log))
    at = next(index for index, event in enumerate(events) if event[1].startswith("/odom"))
    utime, channel, data = events[at]
    events[at] = utime, channel, data[:-1]
    path, table = write_log(tmp_path / "a.lcmlog", events), tmp_path / "odom.csv"
    code, out, err = command("recording", "export", path, "--csv", "/odom", "-o", table)
    assert code == 0
    rows = table.read_text().splitlines()
    assert f"{len(rows) - 1} messages" in out
    assert len(rows) - 1 == sum(event[1] == channel for event in events) - 1
    assert "damaged: 1 message" in err


@pytest.mark.slow
def test_a_tolerance_refines_those_for_live_runs(mission_log: Path, tmp_path: Path, command: Any) -> None:
    """Without metadata a log counts as one of a live run."""
    path = write_log(tmp_path / "a.lcmlog", [event for event in raw(read_log(mission_log)) if event[1] != CHANNEL])
    test = ("replay", path, "--modules", "follow", "--blueprint", "robot-only", "--set", "follow.distance_gain=1.32")
    assert command(*test)[0] == 0
    assert command(*test, "--tolerance", "angular.z=0.2")[0] == 0
    assert command(*test, "--tolerance", "linear.x=0.001")[0] == 1
    assert command(*test, "--exact")[0] == 1


def test_the_log_is_only_read(mission_log: Path) -> None:
    """The parts that the tests above share."""
    with LogReader(mission_log) as log:
        assert sum(1 for _ in log.events()) > 500
        assert log.damages == []


def test_what_is_made_of_a_log_is_its_owners_only(mission_log: Path, tmp_path: Path, command: Any) -> None:
    made = [tmp_path / name for name in ("mission.mcap", "velocities.csv", "report.html", "part.lcmlog")]
    assert command("recording", "export", mission_log, "--mcap", made[0])[0] == 0
    assert command("recording", "export", mission_log, "--csv", "/skill_vel", "-o", made[1])[0] == 0
    assert command("recording", "report", mission_log, "-o", made[2])[0] == 0
    assert command("recording", "cut", mission_log, "-o", made[3], "--to", "1")[0] == 0
    assert {path.name: path.stat().st_mode & 0o077 for path in made} == {path.name: 0 for path in made}
