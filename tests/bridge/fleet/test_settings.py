"""The settings of the link to a fleet hub, as `check` judges them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dimos_streams.blueprint.check import check, refuse_errors
from dimos_streams.blueprint.model import Blueprint, ModuleSpec
from dimos_streams.blueprint.settings import apply_settings

_BRIDGE = ModuleSpec(name="bridge", type="dimos_streams.bridge.module:Bridge", config={"http": False})
_ROBOT = Blueprint(name="robot", modules={"bridge": _BRIDGE})


def test_a_file_that_is_not_there_yet_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    token, ca = tmp_path / "hub.token", tmp_path / "ca.pem"
    settings = {"url": "https://hub.example.org", "robot": "robot1", "token_file": token, "ca": ca}
    blueprint = apply_settings(_ROBOT, None, [f"bridge.hub.{name}={value}" for name, value in settings.items()])
    assert sorted(map(str, check(blueprint))) == [
        f"command line: warning: module 'bridge': the robot's token for the hub can't be read from {token}: No such"
        " file or directory; until it can, nothing is shipped",
        f"command line: warning: module 'bridge': there is no file {str(ca)!r} that can be read for the link to the"
        " hub; until there is, nothing is shipped",
    ]
    refuse_errors(blueprint)
    assert "can't be read from" in caplog.text, "a run says it at its start"
    token.write_text("a-token-of-the-robot\n")
    ca.write_text("a certificate")
    assert check(blueprint) == []


def test_a_file_in_the_users_directory_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = {"url": "https://hub.example.org", "robot": "robot1", "ca": "~/ca.pem"}
    blueprint = apply_settings(_ROBOT, None, [f"bridge.hub.{name}={value}" for name, value in settings.items()])
    (said,) = map(str, check(blueprint))
    assert f"there is no file {str(tmp_path / 'ca.pem')!r} that can be read" in said
    (tmp_path / "ca.pem").write_text("a certificate")
    assert check(blueprint) == []


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ca.pem")
    settings = {"url": "https://hub.example.org", "robot": "robot1", "ca": tmp_path / "ca.pem"}
    blueprint = apply_settings(_ROBOT, None, [f"bridge.hub.{name}={value}" for name, value in settings.items()])
    (said,) = map(str, check(blueprint))
    assert said.endswith(" that can be read for the link to the hub; until there is, nothing is shipped")


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("locked", marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may enter all folders")),
        "x" * 300,
    ],
)
def test_a_file_that_the_system_says_nothing_of_is_a_warning_too(place: str, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0)
    settings = {"url": "https://hub.example.org", "robot": "robot1", "ca": tmp_path / place / "ca.pem"}
    blueprint = apply_settings(_ROBOT, None, [f"bridge.hub.{name}={value}" for name, value in settings.items()])
    (said,) = map(str, check(blueprint))
    assert said.startswith("command line: warning: module 'bridge': there is no file ")
    assert said.endswith(" that can be read for the link to the hub; until there is, nothing is shipped")
