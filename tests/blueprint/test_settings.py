"""The layers of settings, and where each value comes from."""

from __future__ import annotations

from typing import Any

import pytest

from dimos_streams.blueprint import Blueprint, blueprint, include, module
from dimos_streams.blueprint.load import resolve
from dimos_streams.blueprint.settings import SettingRow, apply_settings, explain
from dimos_streams.documents.problem import BlueprintError
from tests.blueprint import toy_modules
from tests.blueprint.conftest import Write

ROBOT = blueprint("robot", module(toy_modules.Camera), module(toy_modules.Walk, distance_m=1.8))
TWO = blueprint("two", include(ROBOT, namespace="robot1"), include(ROBOT))


def refused(
    found: Blueprint, environment: dict[str, str] | None = None, assignments: tuple[str, ...] = ()
) -> list[str]:
    with pytest.raises(BlueprintError) as error:
        apply_settings(found, environment, assignments)
    return str(error.value).split("\n")


def test_each_layer_outranks_the_one_before(write: Write) -> None:
    text = """\
        modules:
          walk:
            type: tests.blueprint.toy_modules:Walk
            config:
              distance_m: 1.1
              label: from the file
              slow_m: 0.1
    """
    environment = {
        "DIMOS_STREAMS__WALK__DISTANCE_M": "1.2",
        "DIMOS_STREAMS__WALK__LABEL": "from the environment",
        "DIMOS_STREAMS_TOKEN": "not a setting",
        "HOME": "/",
    }
    found = apply_settings(resolve(write("x.yaml", text)), environment, ["walk.distance_m=1.3"])
    assert explain(found) == [
        SettingRow("walk", "distance_m", 1.3, "command line"),
        SettingRow("walk", "label", "from the environment", "environment DIMOS_STREAMS__WALK__LABEL"),
        SettingRow("walk", "slow_m", 0.1, "x.yaml:7"),
        SettingRow("walk", "fast_m", 1.0, "default"),
    ]


def test_nested_settings_keep_what_is_beside_them(write: Write) -> None:
    text = "modules:\n  camera:\n    type: tests.blueprint.toy_modules:Camera\n    config:\n      lens: {zoom: 2.0}\n"
    found = apply_settings(resolve(write("x.yaml", text)), {"DIMOS_STREAMS__CAMERA__LENS__FILTER": "red"})
    rows = {row.field: (row.value, row.source) for row in explain(found)}
    assert rows["lens.zoom"] == (2.0, "x.yaml:5")
    assert rows["lens.filter"] == ("red", "environment DIMOS_STREAMS__CAMERA__LENS__FILTER")
    whole = apply_settings(found, None, ["camera.lens={zoom: 4}"])
    rows = {row.field: (row.value, row.source) for row in explain(whole)}
    assert rows["lens.zoom"] == (4.0, "command line")
    assert rows["lens.filter"] == ("", "default")


@pytest.mark.parametrize(
    "variable", ["DIMOS_STREAMS__ROBOT1__WALK__DISTANCE_M", "DIMOS_STREAMS__robot1__Walk__distance_m"]
)
def test_namespaced_modules_are_set_from_the_environment(variable: str) -> None:
    found = apply_settings(TWO, {variable: "1.2"})
    assert found.modules["robot1/walk"].config["distance_m"] == 1.2
    assert found.modules["walk"].config["distance_m"] == 1.8


def test_a_variable_that_nearly_names_a_namespaced_module_is_told_how_it_is_written() -> None:
    assert refused(TWO, {"DIMOS_STREAMS__ROBOT1_WALK__DISTANCE_M": "1"}) == [
        "environment DIMOS_STREAMS__ROBOT1_WALK__DISTANCE_M: it names no module and setting of blueprint 'two'; "
        "did you mean 'robot1/walk'? ('/' is written '__' here)"
    ]


def test_namespaced_modules_are_set_from_the_command_line() -> None:
    found = apply_settings(TWO, None, ["robot1/walk.distance_m=1.2"])
    assert found.modules["robot1/walk"].config["distance_m"] == 1.2
    assert found.modules["walk"].config["distance_m"] == 1.8


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("me", "me"),
        ("12", "12"),
        ("1.50", "1.50"),
        ("null", "null"),
        ("'12'", "12"),
        ("look: there", "look: there"),
        ("[a, b", "[a, b"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_text_fields_take_any_text(text: str, value: str) -> None:
    assert apply_settings(ROBOT, None, [f"walk.label={text}"]).modules["walk"].config["label"] == value


def test_a_check_that_fails_at_what_a_text_means_as_yaml_is_given_the_text() -> None:
    whispering = blueprint("whispering", module(toy_modules.Whisper))
    assert apply_settings(whispering, None, ["whisper.word=3"]).modules["whisper"].config["word"] == "3"


@pytest.mark.parametrize(("text", "value"), [("2", 2), ("1e1", 10.0), ("0x10", 16), ("{zoom: 3}", None)])
def test_values_are_yaml(text: str, value: Any) -> None:
    if value is None:
        assert apply_settings(ROBOT, None, [f"camera.lens={text}"]).modules["camera"].config["lens"] == {"zoom": 3}
    else:
        assert apply_settings(ROBOT, None, [f"camera.rate_hz={text}"]).modules["camera"].config["rate_hz"] == value


def test_an_empty_text_that_does_not_fit_is_named_as_it_was_given() -> None:
    for environment, assignments in (({"DIMOS_STREAMS__WALK__DISTANCE_M": ""}, []), ({}, ["walk.distance_m="])):
        with pytest.raises(BlueprintError, match=r"distance_m: it must be a number \(given: ''\)"):
            apply_settings(ROBOT, environment, assignments)


def test_a_key_that_is_given_twice_is_named() -> None:
    [line] = refused(ROBOT, None, ("camera.lens={zoom: 3, zoom: 4}",))
    assert line == "command line: module 'camera': lens: key 'zoom' is there twice, also at line 1"


def test_settings_that_only_fit_together_are_judged_together() -> None:
    found = apply_settings(ROBOT, None, ["walk.slow_m=2", "walk.fast_m=3"])
    assert found.modules["walk"].config["slow_m"] == 2
    [line] = refused(ROBOT, None, ("walk.slow_m=2",))
    assert "module 'walk': slow_m must not be above fast_m" in line


def test_everything_that_is_wrong_is_named_at_once() -> None:
    environment = {"DIMOS_STREAMS__WALC__DISTANCE_M": "1", "DIMOS_STREAMS__CAMERA__RATE_HERTZ": "5"}
    assignments = (
        "wak.distance_m=1",
        "walk.distence_m=1",
        "walk.distance_m=far",
        "walk",
        "walk=1",
        "camera.lens.zom=2",
        "camera.zoom=2",
        "camera.lens.rate_hz=2",
    )
    assert refused(ROBOT, environment, assignments) == [
        "environment DIMOS_STREAMS__WALC__DISTANCE_M: it names no module and setting of blueprint 'robot'; "
        "did you mean 'walk'?",
        "command line: blueprint 'robot' has no module 'wak'; did you mean 'walk'?",
        "command line: 'walk' is not of the form module.field=value",
        "command line: 'walk' must name a module and something of it, as in 'follow.distance_m'",
        "command line: module 'camera' has no setting 'lens.zom'; did you mean 'zoom'?",
        "command line: module 'camera' has no setting 'lens.rate_hz'; did you mean 'camera.rate_hz'?",
        "environment DIMOS_STREAMS__CAMERA__RATE_HERTZ: module 'camera' has no setting 'rate_hertz';"
        " did you mean 'rate_hz'?",
        "command line: module 'camera' has no setting 'zoom'; did you mean 'camera.lens.zoom'?",
        "command line: module 'walk': distance_m: it must be a number (given: 'far')",
        "command line: module 'walk' has no setting 'distence_m'; did you mean 'distance_m'?",
    ]


def test_a_setting_may_mend_what_the_file_has_wrong() -> None:
    found = blueprint("x", module(toy_modules.Camera, rate_hz=-1))
    assert apply_settings(found, None, ["camera.rate_hz=5"]).modules["camera"].config["rate_hz"] == 5


def test_modules_that_are_not_set_are_not_imported() -> None:
    found = blueprint("x", module("no_such:Thing", name="thing"), module(toy_modules.Camera))
    assert apply_settings(found, None, ["camera.rate_hz=5"]).modules["camera"].config == {"rate_hz": 5}
    [line] = refused(found, None, ("thing.x=1",))
    assert "module 'thing': there is no Python module 'no_such'" in line


def test_explain_names_all_bad_configs() -> None:
    with pytest.raises(BlueprintError) as error:
        explain(blueprint("x", module(toy_modules.Camera, rate_hz=0), module(toy_modules.Keyless)))
    assert len(error.value.problems) == 2


def test_what_is_judged_as_a_whole_names_what_was_set_on_top_of_the_file(write: Write) -> None:
    """The file alone was right: nobody is to look for the mistake there only."""
    text = "modules:\n  walk:\n    type: tests.blueprint.toy_modules:Walk\n    config:\n      slow_m: 0.1\n"
    variable = {"DIMOS_STREAMS__WALK__SLOW_M": "0.9"}
    blueprint = resolve(write("x.yaml", text))
    for environment, assignments, place in (
        ({}, ["walk.fast_m=0.05"], "command line (on top of x.yaml:4)"),
        (variable, ["walk.fast_m=0.2"], f"environment {next(iter(variable))} and command line (on top of x.yaml:4)"),
    ):
        with pytest.raises(BlueprintError) as raised:
            apply_settings(blueprint, environment, assignments)
        assert [problem.where for problem in raised.value.problems] == [place]


def test_what_was_set_is_not_blamed_for_what_the_file_lacks(write: Write) -> None:
    text = "modules:\n  key:\n    type: tests.blueprint.toy_modules:Keyless\n    config: {}\n"
    [line] = refused(resolve(write("x.yaml", text)), None, ("key.tries=2",))
    assert line == "x.yaml:4: module 'key' needs the setting 'key'"


def test_what_was_set_in_a_row_that_is_not_in_the_file_is_blamed_for_what_the_row_lacks(write: Write) -> None:
    text = (
        "modules:\n  route:\n    type: tests.blueprint.toy_modules:Route\n    config:\n      stops: [{wait_s: 1}]\n"
        "      places:\n        door: {name: front}\n        hall: {}\n"
    )
    lacks = "module 'route' needs the setting 'places."
    for setting, line in (
        ("places.dor.wait_s=2", f"command line (on top of x.yaml:6): {lacks}dor.name'; did you mean 'door'?"),
        ("places.attic.wait_s=2", f"command line (on top of x.yaml:6): {lacks}attic.name'"),
        ("places.hall.wait_s=2", f"x.yaml:8: {lacks}hall.name'"),
        ("stops.0.wait_s=2", "x.yaml:5: module 'route' needs the setting 'stops.0.name'"),
        ("stops=[{wait_s: 2}]", "command line: module 'route' needs the setting 'stops.0.name'"),
    ):
        assert line in refused(resolve(write("x.yaml", text)), None, (f"route.{setting}",))
