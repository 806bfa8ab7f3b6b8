"""Recorded inputs in, the modules under test, outputs compared with the recorded ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.settings import defaults_of
from dimos_streams.errors import UserError
from dimos_streams.messages.codec import channel_name, encode
from dimos_streams.messages.image import image_from_array
from dimos_streams.messages.time import header
from dimos_streams.messages.vision_msgs import Detection2DArray
from dimos_streams.recording.cut import LogPart, cut
from dimos_streams.recording.metadata import CHANNEL, Metadata, describe
from dimos_streams.recording.reader import LogReader
from dimos_streams.recording.selection import Selection
from dimos_streams.regression.replay import ReplayOptions, recorded_blueprint, replay
from dimos_streams.regression.report import Report
from dimos_streams.regression.settings.changed_settings import changed_settings
from dimos_streams.regression.tolerances import EXACT, Tolerances
from tests.cli.blueprints import asking_a_vision_model
from tests.perception.chat_server import chat_server
from tests.recording.logs import START, raw, read_log, write_log
from tests.recording.modules import ChangedPickerConfig, Picker
from tests.recording.recorded import record_mission


def replayed(path: Path, *modules: str, **options: Any) -> Report:
    return replay(path, ReplayOptions(modules=modules, **options))


def test_modules_of_which_a_log_has_nothing_are_not_tested_by_what_others_sent_on_their_channels(
    picture_log: Path,
) -> None:
    """``drive`` and ``follow`` both send to the velocity gate; the log is of one who followed."""
    report = replayed(picture_log, "drive")
    assert (report.passed, report.calls) == (False, 0), text_of(report)
    assert report.problem == "the log has nothing that drive sent or said"
    assert sum(stream.by_others for stream in report.streams) > 0


@pytest.mark.parametrize("mode", ["virtual", "live"])
def test_a_logs_settings_send_nothing_to_a_server(
    tmp_path: Path, command: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s3cret-s3cret")
    with chat_server() as server:
        vlm = {"model": "m", "base_url": server.url, "api_key_env": "SECRET"}
        asking = asking_a_vision_model.configured({f"detector.vlm.{name}": value for name, value in vlm.items()})
        metadata = describe(blueprint=asking.model_dump(mode="json"), mode=mode)
        image = encode(image_from_array(np.zeros((8, 8, 3), dtype=np.uint8), "rgb8", header("camera", START)))
        events = [(START, CHANNEL, metadata.encoded()), (START, "/color_image#sensor_msgs.Image", image)]
        log = write_log(tmp_path / "a.lcmlog", events)
        code, out, error = command("replay", log, "--modules", "detector")
        assert (code, out) == (2, "")
        assert error.endswith(
            "the detector backend 'vlm' asks a server, which keeps no virtual time: set another one\n"
        )
        assert server.requests == []


def text_of(report: Report) -> str:
    return "\n".join(report.lines())


@pytest.mark.slow
@pytest.mark.feature("F3")
@pytest.mark.parametrize("modules", ["follow", "lookout", "drive", "gate", "follow,lookout,drive,gate"])
def test_every_module_gives_the_same_bytes_again(mission_log: Path, modules: str) -> None:
    report = replayed(mission_log, *modules.split(","))
    assert report.passed, text_of(report)
    assert report.tolerances == EXACT
    assert sum(stream.matched for stream in report.streams) > 3


@pytest.mark.slow
def test_the_simulator_and_the_detector_give_the_same_pictures_again(picture_log: Path) -> None:
    for module in ("robot", "detector"):
        report = replayed(picture_log, module)
        assert report.passed, text_of(report)
    assert {stream.stream for stream in replayed(picture_log, "robot").streams} >= {"/color_image#sensor_msgs.Image"}


@pytest.mark.slow
@pytest.mark.feature("F3")
def test_inputs_that_were_left_out_of_the_log_are_named_where_outputs_are_missing(mission_log: Path) -> None:
    report = replayed(mission_log, "detector")
    assert not report.passed
    assert "nothing was recorded on /instances#sensor_msgs.Image, which the modules read" in report.remarks
    assert replayed(mission_log, "follow").remarks == ()


@pytest.mark.slow
@pytest.mark.feature("F3")
def test_a_changed_gain_is_found_and_shown(mission_log: Path) -> None:
    report = replayed(mission_log, "follow", settings={"follow.distance_gain": 1.2 * 1.1})
    assert not report.passed
    first = report.first
    assert first is not None
    assert first.stream == "/skill_vel#geometry_msgs.Twist"
    assert first.what == "different"
    assert {field.field for field in first.fields} <= {"linear.x", "linear.y"}
    assert "linear.x: recorded 0." in text_of(report)


@pytest.mark.slow
@pytest.mark.feature("F3")
def test_a_replay_that_fails_names_the_settings_that_are_not_the_recorded_ones(mission_log: Path) -> None:
    recorded = recorded_blueprint(mission_log)
    report = replayed(mission_log, "follow", blueprint=recorded.configured({"follow.distance_gain": 3}))
    assert not report.passed
    assert report.settings == ("follow.distance_gain: recorded 1.2, replayed 3.0",)
    assert "  setting follow.distance_gain: recorded 1.2, replayed 3.0" in text_of(report).splitlines()
    assert replayed(mission_log, "follow", blueprint=recorded).settings == ()


@pytest.mark.slow
def test_an_input_that_is_called_otherwise_now_is_told_what_the_log_has(mission_log: Path) -> None:
    renamed = recorded_blueprint(mission_log).remap({"drive.odom": "odometry"})
    said = r"drive\.odom reads /odometry#nav_msgs\.Odometry, .*; of its type log '.*' has /odom#nav_msgs\.Odometry$"
    with pytest.raises(UserError, match=said):
        replayed(mission_log, "drive", blueprint=renamed)


def test_a_module_that_is_called_otherwise_now_is_told_of_those_that_there_were(mission_log: Path) -> None:
    recorded = recorded_blueprint(mission_log)
    spec = recorded.modules["follow"].model_copy(update={"name": "pursue"})
    renamed = recorded.model_copy(update={"modules": {**recorded.modules, "pursue": spec}})
    report = replayed(mission_log, "pursue", blueprint=renamed)
    assert not report.passed
    assert "  the recorded run had no module 'pursue' (modules: robot, gate, " in text_of(report)


def test_a_recorded_setting_that_its_module_has_no_more_is_named() -> None:
    now = resolve("robot-only")
    then = describe(blueprint=now.configured({"follow.gone": 1}).model_dump(mode="json"))
    (line,) = changed_settings(then, now, ["follow"], {})
    assert line.startswith("the recorded settings of module 'follow' do not fit its class any more: ")
    assert "'gone'" in line
    assert list(changed_settings(None, now, ["follow"], {})) == []


@pytest.mark.feature("F3")
def test_a_default_that_the_code_has_changed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording has the defaults of its run; of one that has none nobody knows what they were."""
    blueprint = Blueprint(name="b", modules={"p": ModuleSpec(name="p", type="tests.recording.modules:Picker")})
    described, defaults = blueprint.model_dump(mode="json"), defaults_of(blueprint)
    then, unsaid = describe(blueprint=described, defaults=defaults), describe(blueprint=described)
    then = Metadata.decoded(then.encoded())
    monkeypatch.setattr(Picker, "config_type", lambda: ChangedPickerConfig)
    assert list(changed_settings(then, blueprint, ["p"], {})) == ["p.gain: recorded 0.5, replayed 0.6"]
    assert list(changed_settings(unsaid, blueprint, ["p"], {})) == []
    given = blueprint.configured({"p.gain": 0.7})
    assert list(changed_settings(then, given, ["p"], {})) == ["p.gain: recorded 0.5, replayed 0.7"]
    assert list(changed_settings(unsaid, given, ["p"], {})) == [
        "p.gain: recorded the default, which the log does not name (today 0.6), replayed 0.7"
    ]
    assert list(changed_settings(then, blueprint.configured({"p.gain": 0.5}), ["p"], {})) == []


def test_defaults_are_one_text_whatever_the_order_of_a_set_and_have_no_secret() -> None:
    blueprint = Blueprint(name="b", modules={"p": ModuleSpec(name="p", type="tests.recording.modules:Picker")})
    noted = describe(blueprint=blueprint.model_dump(mode="json"), defaults=defaults_of(blueprint)).defaults
    assert noted == {"p": {"gain": 0.5, "near": sorted(map(str, range(20)))}}


@pytest.mark.slow
@pytest.mark.feature("K4")
def test_what_an_operator_set_in_a_run_is_set_again_at_its_moment(tmp_path: Path) -> None:
    log = record_mission(
        tmp_path / "set.lcmlog", follow_s=6.0, settings=["follow.distance_m=0.8", "gate.max_speed=0.3"]
    )
    report = replayed(log, "follow", "drive", "gate")
    assert report.passed, text_of(report)
    without = [event for event in raw(read_log(log)) if b"settings:set" not in event[2]]
    changed = replayed(write_log(tmp_path / "unset.lcmlog", without), "follow", "drive", "gate")
    assert not changed.passed, "what was set makes a difference"


@pytest.mark.slow
@pytest.mark.feature("F3")
def test_a_changed_confidence_is_found_in_the_right_call(mission_log: Path) -> None:
    report = replayed(mission_log, "lookout", "follow", "drive", settings={"lookout.confidence": 1.0})
    assert not report.passed
    assert report.first is not None
    failed = {stream.stream.partition(" ")[0] for stream in report.streams if not stream.passed(0)}
    assert failed <= {"look_out_for", "/skill_calls#dimos_streams.SkillCall", "/wanted_descriptions#std_msgs.String"}
    assert report.first.stream.startswith("look_out_for [")


@pytest.mark.slow
def test_tolerances_let_a_small_change_pass(mission_log: Path) -> None:
    changed = {"follow.distance_gain": 1.2 * 1.02}
    assert not replayed(mission_log, "follow", settings=changed).passed
    narrow = Tolerances(fields={"/skill_vel:linear.x": 0.1, "linear.y": 0.1, "data.speed": 0.1})
    report = replayed(mission_log, "follow", settings=changed, tolerances=narrow)
    assert report.passed, text_of(report)


@pytest.mark.slow
def test_a_tolerance_of_a_field_that_nothing_has_is_an_error(mission_log: Path) -> None:
    with pytest.raises(UserError, match=r"'liner\.x'; did you mean 'linear\.x'\? \(valid: linear\.x, "):
        replayed(mission_log, "follow", tolerances=Tolerances(fields={"liner.x": 0.1}))


@pytest.mark.slow
def test_late_outputs_need_a_time_tolerance(mission_log: Path, tmp_path: Path) -> None:
    """As if the recorder had been 30 ms late for everything that the module said."""
    events = read_log(mission_log)
    outputs = {"/skill_vel#geometry_msgs.Twist", "/wanted_descriptions#std_msgs.String"}
    late = [event._replace(utime=event.utime + 30_000) if event.channel in outputs else event for event in events]
    path = write_log(tmp_path / "late.lcmlog", sorted(raw(late), key=lambda event: event[0]))
    assert not replayed(path, "follow").passed
    report = replayed(path, "follow", tolerances=Tolerances(time_s=0.05))
    assert report.passed, text_of(report)


@pytest.mark.slow
@pytest.mark.feature("F3")
def test_update_rewrites_the_outputs_and_nothing_else(mission_log: Path, tmp_path: Path) -> None:
    path = tmp_path / "golden.lcmlog"
    shutil.copy(mission_log, path)
    changed = {"follow.distance_gain": 1.4}
    report = replayed(path, "follow", settings=changed, update=True)
    assert report.updated
    assert replayed(path, "follow", settings=changed).passed
    assert not replayed(path, "follow").passed
    outputs = ("/skill_vel", "/tool_streams")
    before, after = (
        sorted(event for event in raw(read_log(log)) if not event[1].startswith(outputs))
        for log in (mission_log, path)
    )
    assert before == after
    assert [event.number for event in read_log(path)] == list(range(len(read_log(path))))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_a_log_of_before_1970_takes_no_longer_than_another(mission_log: Path, tmp_path: Path) -> None:
    """As of a machine without a clock that was set: nothing waits for 1970 to come."""
    events = read_log(mission_log)
    earlier = events[0].utime + 10 * 365 * 86_400_000_000
    path = write_log(tmp_path / "1960.lcmlog", raw(event._replace(utime=event.utime - earlier) for event in events))
    report = replayed(path, "follow")
    assert report.passed, text_of(report)
    assert report.calls == 2


def test_a_virtual_recording_that_was_recorded_once_more_years_later_takes_no_longer(
    mission_log: Path, tmp_path: Path
) -> None:
    years = 5 * 365 * 86_400_000_000
    events = (event._replace(utime=event.utime + years) for event in read_log(mission_log))
    report = replayed(write_log(tmp_path / "again.lcmlog", raw(events)), "follow")
    assert report.calls == 2


def test_calls_are_made_up_from_their_first_events(mission_log: Path, tmp_path: Path) -> None:
    events = [event for event in raw(read_log(mission_log)) if not event[1].startswith("/skill_calls")]
    report = replayed(write_log(tmp_path / "a.lcmlog", events), "follow")
    assert report.calls == 2
    assert report.passed, text_of(report)


def test_metadata_behind_other_events_count(mission_log: Path, tmp_path: Path) -> None:
    """As where another program has put logs together, or what is before them can't be read."""
    first, second, *others = raw(read_log(mission_log))
    damaged = (first[0], CHANNEL, first[2][:-9])
    report = replayed(write_log(tmp_path / "b.lcmlog", [damaged, second, first, *others]), "follow")
    assert report.passed, text_of(report)


def test_a_log_that_names_no_blueprint_says_why(mission_log: Path, tmp_path: Path) -> None:
    events = raw(read_log(mission_log))
    damaged = [(at, name, data[:-9] if name == CHANNEL else data) for at, name, data in events]
    others = [event for event in events if event[1] != CHANNEL]
    for logged, why in (
        (damaged, r"says of itself what can't be read: .* too early; name the blueprint with --blueprint"),
        (others, "does not say which blueprint ran; name the blueprint with --blueprint"),
        ([], "has no events"),
    ):
        with pytest.raises(UserError, match=why):
            replayed(write_log(tmp_path / "b.lcmlog", logged), "follow")


@pytest.mark.slow
def test_a_log_without_metadata_needs_a_blueprint(mission_log: Path, tmp_path: Path, lcm_library: Any) -> None:
    events = [event for event in raw(read_log(mission_log)) if event[1] != CHANNEL]
    path = tmp_path / "foreign.lcmlog"
    log = lcm_library.EventLog(str(path), "w")
    for utime, channel, data in [*events, (events[-1][0], "POSE", b"of another program")]:
        log.write_event(utime, channel, data)
    log.close()
    with pytest.raises(UserError, match="--blueprint"):
        replayed(path, "follow")
    report = replayed(path, "follow", blueprint=resolve("robot-only"))
    assert report.passed, text_of(report)
    assert "POSE (1)" in text_of(report)


@pytest.mark.slow
def test_what_was_not_recorded_is_not_compared(tmp_path: Path) -> None:
    chosen = Selection(exclude=["*Image", "/skill_vel"])
    path = record_mission(tmp_path / "a.lcmlog", follow_s=2.0, selection=chosen)
    report = replayed(path, "follow")
    assert report.passed, text_of(report)
    assert "not recorded, so not compared: /skill_vel" in text_of(report)


def test_a_module_that_fails_fails_the_replay(mission_log: Path) -> None:
    blueprint = recorded_blueprint(mission_log)
    spec = blueprint.modules["follow"].model_copy(update={"type": "tests.recording.modules:Breaks"})
    report = replayed(mission_log, "follow", blueprint=blueprint.with_modules([spec]))
    assert not report.passed
    assert "broken on purpose" in report.problem


@pytest.mark.parametrize(
    ("module", "ends"),
    [
        ("Renames", "rejected \"no skill is called 'follow_person'; did you mean 'follow_persons'? (offered: "),
        ("Raises", 'failed "the legs are off"'),
    ],
)
def test_a_report_says_how_a_call_ended_instead(mission_log: Path, module: str, ends: str) -> None:
    blueprint = recorded_blueprint(mission_log)
    spec = blueprint.modules["follow"].model_copy(update={"type": f"tests.recording.modules:{module}"})
    report = replayed(mission_log, "follow", blueprint=blueprint.with_modules([spec]))
    assert report.first is not None
    assert report.first.stream.endswith("]"), "before the progress that is missing for that reason"
    lines = text_of(report).splitlines()
    failed = next(number for number, line in enumerate(lines) if line.startswith("  FAIL follow_person ["))
    assert lines[failed + 1].startswith('       close: recorded cancelled "stop_following was called (by ')
    assert f", replayed {ends}" in lines[failed + 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ((), "which modules"),
        (("folow",), "did you mean 'follow'"),
        (("bridge",), "can't be replayed alone"),
        (("gate",), None),
        (("follow", "gate"), "test drive as well"),
    ],
)
def test_modules_that_cannot_be_tested_so(mission_log: Path, modules: tuple[str, ...], message: str | None) -> None:
    if message is None:
        assert replayed(mission_log, *modules).passed
        return
    with pytest.raises(UserError, match=message):
        replayed(mission_log, *modules)


def test_a_log_without_their_outputs_tests_nothing(mission_log: Path, tmp_path: Path) -> None:
    events = [event for event in raw(read_log(mission_log)) if event[1] in (CHANNEL, "/odom#nav_msgs.Odometry")]
    report = replayed(write_log(tmp_path / "a.lcmlog", events), "follow")
    assert not report.passed
    assert "nothing that follow sent or said" in text_of(report)


@pytest.mark.feature("F3")
def test_half_a_recording_has_not_passed(mission_log: Path, tmp_path: Path) -> None:
    half = tmp_path / "half.lcmlog"
    half.write_bytes(mission_log.read_bytes()[: mission_log.stat().st_size // 2])
    report = replayed(half, "drive")
    assert not report.passed
    assert "bytes of the log are damaged, first" in report.problem
    before = half.read_bytes()
    assert not replayed(half, "drive", update=True).updated
    assert half.read_bytes() == before


@pytest.mark.parametrize("readable", [0, 1])
def test_inputs_that_can_not_be_read_are_named_and_without_any_nothing_is_tested(
    mission_log: Path, tmp_path: Path, readable: int
) -> None:
    """As after a change of the type's definition, or damage inside of messages."""
    channel = channel_name("/detections", Detection2DArray)
    events = raw(read_log(mission_log))
    inputs = [event for event in events if event[1] == channel]
    changed = [(*event[:2], b"otherwise") if event in inputs[readable:] else event for event in events]
    path = write_log(tmp_path / "other.lcmlog", changed)
    before = path.read_bytes()
    report = replayed(path, "follow", update=True)
    why = "its fingerprint is 6f74686572776973, not"
    if readable:
        assert f"messages of {channel} that can't be read: {len(inputs) - 1}, first: {why}" in text_of(report)
    else:
        assert f"no message of {channel} can be read: {why}" in report.problem
        assert path.read_bytes() == before, "what modules do without their inputs is no golden recording"


@pytest.mark.parametrize(
    ("module", "exclude", "left_out"),
    [
        ("detector", (), "/depth_image#sensor_msgs.Image, /instances#sensor_msgs.Image"),
        ("follow", ("/detections",), "/detections#vision_msgs.Detection2DArray"),
        ("gate", ("/scan",), "/scan#sensor_msgs.LaserScan"),
    ],
)
@pytest.mark.feature("F3")
def test_a_recording_that_leaves_out_an_input_is_not_written_anew_with_what_modules_do_without_it(
    mission_log: Path, tmp_path: Path, module: str, exclude: tuple[str, ...], left_out: str
) -> None:
    """As by ``blueprint_run``, which records no pictures: from then on a test of it would have passed, whatever the
    module does."""
    path = tmp_path / "part.lcmlog"
    with LogReader(mission_log) as log:
        cut([log], path, LogPart(selection=Selection(exclude=exclude), to_s=3.0))
    before = path.read_bytes()
    report = replayed(path, module, update=True)
    assert (report.passed, report.updated) == (False, False)
    assert f"it leaves out {left_out}, which the modules read: record that, too" in report.problem
    assert path.read_bytes() == before


def test_a_log_that_says_of_itself_what_is_no_blueprint_is_named(mission_log: Path, tmp_path: Path) -> None:
    events = raw(read_log(mission_log))
    changed = [
        (utime, channel, data.replace(b'"description"', b'"descriptiom"') if channel == CHANNEL else data)
        for utime, channel, data in events
    ]
    assert changed != events
    path = write_log(tmp_path / "other.lcmlog", changed)
    with pytest.raises(UserError, match=r"says of itself what is no blueprint: .*; name one with --blueprint"):
        replayed(path, "drive")


def test_a_replay_warns_once_of_a_clock_that_was_set(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorded = read_log(Path(__file__).parent / "golden" / "patrol.lcmlog")[:120]
    set_back = [
        event._replace(utime=event.utime - 60_000_000 * (number > 100)) for number, event in enumerate(recorded)
    ]
    replay(write_log(tmp_path / "a.lcmlog", raw(set_back)), ReplayOptions(modules=("gate",)))
    warnings = [record.getMessage() for record in caplog.records if "the clock goes back" in record.getMessage()]
    assert len(warnings) == 1


def test_a_module_that_there_is_not_is_told_with_those_that_there_are() -> None:
    golden = Path(__file__).parent / "golden" / "patrol.lcmlog"
    with pytest.raises(UserError, match=r"has no module 'x' \(modules: robot, gate, "):
        replay(golden, ReplayOptions(modules=("x",)))
