"""``check`` tells everything at once: what can be known beside a mistake is told together with it."""

from __future__ import annotations

import re

import pytest

from dimos_streams.blueprint import classes
from dimos_streams.blueprint.check import check_draft
from dimos_streams.blueprint.load import drafted
from dimos_streams.blueprint.settings import with_settings
from tests.blueprint.checked import found_in
from tests.blueprint.conftest import Write

TOYS = "tests.blueprint.toy_modules"
TWO_WALKS = f"""\
modules:
  walk: {{type: {TOYS}:Walk, config: {{distance_m: 0}}}}
  other: {{type: {TOYS}:Walk, config: {{speed: 1}}, remap: {{scn: scan}}}}
"""
SETTINGS = [
    "x.yaml:2: module 'walk': distance_m: it must be more than 0 (given: 0)",
    "x.yaml:3: module 'other' has no setting 'speed' (valid: distance_m, label, slow_m, fast_m)",
    "x.yaml:3: module 'other' has no stream 'scn' to remap; did you mean 'scan'?",
]
PUBLISHERS = (
    "x.yaml:3: warning: channel '/cmd_vel#geometry_msgs.Twist' has 2 publishers: walk.cmd_vel, other.cmd_vel; "
    "remap one, or list it in the class's shared_outputs (walk.cmd_vel, other.cmd_vel)"
)
SKILLS = "x.yaml:3: skill 'walk' is offered by both 'walk' and 'other'; use another namespace"


def unfed(line: int, module: str) -> str:
    return (
        f"x.yaml:{line}: module {module!r} requires its input 'color_image', but nothing publishes "
        "'/color_image#sensor_msgs.Image'; no module has an output of that type"
    )


def doubt(*inputs: str) -> str:
    return f"warning: whether anything publishes for {', '.join(inputs)} is judged once every module can be used"


def test_settings_wiring_and_skills_are_judged_together(write: Write) -> None:
    assert found_in(write, TWO_WALKS) == [*SETTINGS, PUBLISHERS, SKILLS, unfed(2, "walk"), unfed(3, "other")]


def test_what_a_class_that_can_not_be_imported_might_send_is_not_missed_and_all_else_is_told(write: Write) -> None:
    missing = f"  camera: {{type: '{TOYS}:Camra'}}\n  eye: {{type: '{TOYS}:Ey'}}\n"
    found = found_in(write, TWO_WALKS + missing)
    assert [re.sub(r"\(it has .*, Camera, .* more\)", "(it has …)", line) for line in found] == [
        *SETTINGS,
        f"x.yaml:4: module 'camera': {TOYS!r} has no 'Camra'; did you mean 'Camera'?",
        f"x.yaml:5: module 'eye': {TOYS!r} has no 'Ey' (it has …)",
        PUBLISHERS,
        SKILLS,
        doubt("walk.color_image", "other.color_image"),
    ]


def test_an_input_that_is_left_unwired_is_wrong_whatever_else_there_is(write: Write) -> None:
    text = f"modules:\n  eye: {{type: '{TOYS}:Ey'}}\n  walk: {{type: '{TOYS}:Walk', remap: {{color_image: null}}}}\n"
    assert found_in(write, text)[1].startswith(
        "x.yaml:3: module 'walk' requires its input 'color_image', it can't be"
    )


def test_what_is_wrong_with_the_form_does_not_hide_the_rest(write: Write) -> None:
    write("inner.yaml", f"modules:\n  wheels: {{typ: {TOYS}:Wheels}}\n  camera: {{type: {TOYS}:Camera}}\n")
    text = f"""\
        moduls: {{}}
        include:
          - {{blueprint: inner.yaml, namespace: a, set: {{camera.rate: 1, camra.rate_hz: 1}}}}
          - nowhere.yaml
        modules:
          My-Walk: {{type: {TOYS}:Walk, process: P, config: {{speed: 1}}}}
          wheels: {{type: {TOYS}:Wheels, remp: {{}}}}
          bare:
        delivery: {{cmd_vel: fast}}
    """
    must = "a name: use a-z, 0-9 and single underscores, beginning with a letter"
    assert found_in(write, text) == [
        "x.yaml:9: delivery.cmd_vel: it must be 'reliable' or 'latest' (given: 'fast')",
        "x.yaml:1: unknown key 'moduls' in the blueprint; did you mean 'modules'?",
        "inner.yaml:2: module 'wheels' needs the key 'type'",
        "inner.yaml:2: unknown key 'typ' in module 'wheels'; did you mean 'type'?",
        "x.yaml:3: warning: as far as it could be read, blueprint 'inner' has no module 'camra'; did you mean"
        " 'camera'?",
        "x.yaml:4: there is no blueprint file 'nowhere.yaml'",
        f"x.yaml:6: 'My-Walk' can't be {must}",
        f"x.yaml:6: 'P' can't be {must}",
        "x.yaml:7: unknown key 'remp' in module 'wheels'; did you mean 'remap'?",
        "x.yaml:8: modules.bare: it must be an object, names with their values (given: None)",
        "x.yaml:3: module 'a/camera' has no setting 'rate'; did you mean 'rate_hz'?",
        "x.yaml:6: module 'My-Walk' has no setting 'speed' (valid: distance_m, label, slow_m, fast_m)",
        doubt("My-Walk.color_image"),
    ]


def test_a_wrong_delivery_hides_nothing_of_the_wiring(write: Write) -> None:
    text = f"delivery: {{cmd_vel: fast}}\nmodules:\n  walk: {{type: '{TOYS}:Walk'}}\n"
    assert found_in(write, text)[1:] == [unfed(3, "walk")]


def test_a_module_that_is_there_twice_is_judged_too(write: Write) -> None:
    write("inner.yaml", f"modules:\n  walk: {{type: {TOYS}:Walk}}\n")
    text = f"include: [inner.yaml]\nmodules:\n  walk: {{type: {TOYS}:Walk, config: {{speed: 1}}}}\n"
    twice, *rest = found_in(write, text)
    assert twice.startswith("x.yaml:3: module 'walk' is there twice (also at inner.yaml:2)")
    assert [line.partition(" (valid")[0] for line in rest] == [
        "x.yaml:3: module 'walk' has no setting 'speed'",
        doubt("walk.color_image"),
    ]


def test_modules_that_two_includes_bring_of_a_third_blueprint_are_told_in_a_line_with_what_leaves_them_out(
    write: Write,
) -> None:
    write("base.yaml", f"modules:\n  camera: {{type: {TOYS}:Camera}}\n  walk: {{type: {TOYS}:Walk}}\n")
    for name in ("dance", "sing"):
        write(f"{name}.yaml", f"include: [base.yaml]\nmodules:\n  {name}: {{type: {TOYS}:Camera}}\n")
    second = "include:\n- dance.yaml\n- {{blueprint: sing.yaml{}}}\n"
    twice, of_its_own, *_ = found_in(write, second.format("") + f"modules:\n  camera: {{type: {TOYS}:Camera}}\n")
    assert twice == (
        "x.yaml:3: 'sing' brings modules that 'dance' has brought already: camera, walk; leave them out of one,"
        " `without: [camera, walk]`, or give it a namespace"
    )
    assert of_its_own.startswith("x.yaml:5: module 'camera' is there twice (also at base.yaml:2)")
    left_out = found_in(write, second.format(", without: [camera, walk]"))
    assert not any("twice" in line or "already" in line for line in left_out)


def test_a_wrong_name_leaves_the_others_of_its_machine_there(write: Write) -> None:
    text = f"modules:\n  camera: {{type: '{TOYS}:Camera'}}\n  key: {{type: '{TOYS}:Keyless'}}\n"
    assert found_in(write, f"{text}machines: {{robot: [camra, camera, key]}}\n") == [
        "x.yaml:4: blueprint 'x' has no module 'camra'; did you mean 'camera'?",
        "x.yaml:3: module 'key' needs the setting 'key'",
    ]


def test_settings_on_top_are_told_together_with_the_blueprint(write: Write) -> None:
    reference = write("x.yaml", f"modules:\n  walk: {{type: '{TOYS}:Walk', config: {{speed: 1}}}}\n")
    settings = ["wak.label=a", "walk.distance_m=0", "walk"]
    problems = check_draft(with_settings(drafted(reference), {"DIMOS_STREAMS__WAK__X": "1"}, settings))
    assert [str(problem).partition(" (valid")[0] for problem in problems] == [
        "environment DIMOS_STREAMS__WAK__X: it names no module and setting of blueprint 'x'; did you mean 'walk'?",
        "command line: blueprint 'x' has no module 'wak'; did you mean 'walk'?",
        "command line: 'walk' is not of the form module.field=value",
        "command line: module 'walk': distance_m: it must be more than 0 (given: 0)",
        "x.yaml:2: module 'walk' has no setting 'speed'",
        unfed(2, "walk"),
    ]


def test_a_setting_of_a_module_that_may_be_what_could_not_be_read_is_a_warning(write: Write) -> None:
    reference = write("x.yaml", "modules:\n  walk: {typ: a}\n")
    *_, last = check_draft(with_settings(drafted(reference), None, ["walk.distance_m=0"]))
    assert (
        str(last)
        == "command line: warning: as far as it could be read, blueprint 'x' has no module 'walk' (modules: none)"
    )


def test_what_a_wrong_namespace_would_have_kept_apart_is_not_told_as_twice_there(write: Write) -> None:
    write("walk.yaml", f"modules: {{walk: {{type: {TOYS}:Walk}}}}")
    text = "include:\n  - {blueprint: walk.yaml, namespace: r 1}\n  - {blueprint: walk.yaml, namespace: r 2}\n"
    found = found_in(write, text)
    assert [line.partition(" can't be a name")[0] for line in found] == ["x.yaml:2: 'r 1'", "x.yaml:3: 'r 2'"]


def test_a_wrong_key_of_a_module_hides_nothing_of_it(write: Write) -> None:
    text = f"modules:\n  walk: {{type: '{TOYS}:Walk', procces: x, config: {{speed: 1}}, remap: {{scn: scan}}}}\n"
    assert [line.partition(" (valid")[0] for line in found_in(write, text)] == [
        "x.yaml:2: unknown key 'procces' in module 'walk'; did you mean 'process'?",
        "x.yaml:2: module 'walk' has no setting 'speed'",
        "x.yaml:2: module 'walk' has no stream 'scn' to remap; did you mean 'scan'?",
        doubt("walk.color_image"),
    ]


def test_of_a_list_with_a_wrong_entry_the_others_are_judged(write: Write) -> None:
    text = f"""\
        modules:
          walk: {{type: '{TOYS}:Walk'}}
        external:
          - 3
          - color_image
          - scan#sensor_msgs.LaserScann
          - a b#std_msgs.String
        delivery: {{walk: fast, cmd_vel: reliable}}
    """
    must = "must be of the form '/topic#package.Type': there is no such message type"
    assert found_in(write, text) == [
        "x.yaml:4: external.0: it must be a text (given: 3)",
        "x.yaml:8: delivery.walk: it must be 'reliable' or 'latest' (given: 'fast')",
        f"x.yaml:5: external 'color_image' {must}",
        f"x.yaml:6: external 'scan#sensor_msgs.LaserScann' {must}; did you mean 'sensor_msgs.LaserScan'?",
        "x.yaml:7: external 'a b#std_msgs.String': '/a b' can't be a topic: it must begin with '/' and have no '#',"
        " space or NUL",
        "x.yaml:8: delivery of '/cmd_vel' can't be 'reliable': a geometry_msgs.Twist that a link has lost would move"
        " the robot when the link is back; use 'latest'",
    ]


def test_of_a_list_of_machines_that_is_not_whole_no_module_is_said_to_be_on_none(write: Write) -> None:
    text = f"modules:\n  camera: {{type: '{TOYS}:Camera'}}\nmachines: {{a: 3, b: [camra]}}\n"
    assert found_in(write, text) == [
        "x.yaml:3: machines.a: it must be a list (given: 3)",
        "x.yaml:3: warning: as far as it could be read, blueprint 'x' has no module 'camra'; did you mean 'camera'?",
    ]
    listed = (
        f"modules:\n  camera: {{type: '{TOYS}:Camera'}}\n  wheels: {{type: '{TOYS}:Keyless', config: {{key: a}}}}\n"
    )
    listed += "machines: {a: [camera, 3], b: [wheels]}\n"
    assert found_in(write, listed) == ["x.yaml:4: machines.a.1: it must be a text (given: 3)"]


def test_an_external_channel_that_can_be_none_is_told_without_what_follows_from_it(write: Write) -> None:
    text = "include: [follow-person]\nexternal: [odom, odom#nav_msgs.Odom, /odom#std_msgs.String]\n"
    *wrong, types = found_in(write, text)
    assert [line.partition(" must be")[0] for line in wrong] == [
        "x.yaml:2: external 'odom'",
        "x.yaml:2: external 'odom#nav_msgs.Odom'",
    ]
    assert "topic '/odom' has 3 types: " in types  # of which each is one
    assert types.count("by outside") == 1


def test_of_very_many_wrong_settings_the_first_are_told_and_the_number_of_the_others(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each all others are looked through: thousands would take minutes."""
    monkeypatch.setattr(classes, "_MOST_WRONG", 2)
    told, more = found_in(write, TWO_WALKS.replace("speed: 1", "speed: 1, a: 1, b: 1, c: 1"))[1:4], 2
    assert [line.partition(" (valid")[0] for line in told] == [
        "x.yaml:3: module 'other' has no setting 'speed'",
        "x.yaml:3: module 'other' has no setting 'a'",
        f"x.yaml:3: module 'other': {more} more of its settings can't be used",
    ]
