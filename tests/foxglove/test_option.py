"""`run --foxglove`: an option whose value may be left out, and the module that it adds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from dimos_streams.blueprint.load import resolve
from dimos_streams.cli.entry import run_command
from dimos_streams.cli.option_groups.foxglove_option import with_default_address
from dimos_streams.cli.option_groups.run_request import RunRequest
from dimos_streams.cli.running.foxglove_plan import foxglove_lines, with_foxglove
from dimos_streams.cli.running.run_plan import prepare
from dimos_streams.errors import UserError
from dimos_streams.foxglove.address import LAYOUT, parsed_address, url_of

USUAL = "--foxglove=127.0.0.1:8765"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("run follow-person --foxglove", f"run follow-person {USUAL}"),
        ("run --foxglove follow-person", f"run {USUAL} follow-person"),
        ("run --foxglove mine.yaml", f"run {USUAL} mine.yaml"),
        ("run follow-person --foxglove --daemon", f"run follow-person {USUAL} --daemon"),
        ("run follow-person --foxglove 9000", "run follow-person --foxglove 9000"),
        ("run follow-person --foxglove 127.0.0.1:9000", "run follow-person --foxglove 127.0.0.1:9000"),
        ("run follow-person --foxglove [::1]:9000", "run follow-person --foxglove [::1]:9000"),
        ("run follow-person --foxglove=robot", "run follow-person --foxglove=robot"),
        ("run -- --foxglove", "run -- --foxglove"),
    ],
)
def test_without_an_address_it_has_the_usual_one(given: str, taken: str) -> None:
    assert with_default_address(given.split()) == taken.split()


def test_the_token_that_the_bridge_is_set_to_want_is_that_of_the_whole_run() -> None:
    request = RunRequest(reference="follow-person", token="of-the-run", virtual_time=True)
    assert prepare(request).options().token == "of-the-run"
    own = prepare(replace(request, settings=["bridge.token=of-the-bridge"]))
    assert own.options().token == "of-the-bridge"
    secret = own.blueprint.configured({"bridge.token": SecretStr("in-python")}, source="")
    assert replace(own, blueprint=secret).options().token == "in-python"


def test_a_part_without_the_bridge_has_the_token_that_the_bridge_elsewhere_is_set_to_want() -> None:
    request = RunRequest(reference="follow-person-split", machine="robot-side", token="of-the-run")
    part = prepare(replace(request, settings=["bridge.token=of-the-bridge"]))
    assert part.bridge is None
    assert part.token == "of-the-bridge"
    assert prepare(request).token == "of-the-run"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9000", ("127.0.0.1", 9000)),
        (":9000", ("127.0.0.1", 9000)),
        ("robot.local", ("robot.local", 8765)),
        ("0.0.0.0:9000", ("0.0.0.0", 9000)),
        ("[::1]:9000", ("::1", 9000)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parsed_address(text) == address


@pytest.mark.parametrize("text", ["0", "65536", "robot:0", "robot:x", "::1", "ws://robot:9000", "a@b:1", "robot:1/x"])
def test_what_is_no_address_is_an_error_that_says_so(text: str) -> None:
    valid = "valid: PORT or HOST:PORT, as in '127.0.0.1:8765'"
    with pytest.raises(UserError, match=re.escape(f"{text!r} is no address for viewers; {valid}")):
        parsed_address(text)


def test_it_adds_a_module_that_settings_may_be_about() -> None:
    settings = ["foxglove.services=false"]
    request = RunRequest(reference="follow-person", settings=settings, port=7999, foxglove="0.0.0.0:9000")
    blueprint = prepare(request).blueprint
    module = blueprint.modules["foxglove"]
    assert module.config == {"host": "0.0.0.0", "port": 9000, "services": False}
    assert foxglove_lines(blueprint) == ["foxglove ws://127.0.0.1:9000", f"foxglove layout {LAYOUT}"]
    assert foxglove_lines(resolve("follow-person")) == []
    assert url_of("::", 1) == "ws://[::1]:1"
    with pytest.raises(UserError, match="has a module 'foxglove' already"):
        with_foxglove(blueprint, address="9000")


def test_of_several_machines_the_one_that_is_run_has_it() -> None:
    request = RunRequest(reference="follow-person-split", foxglove="9000")
    part = prepare(replace(request, machine="brain-side")).blueprint
    assert part.modules["foxglove"].machine == "brain-side"
    whole = prepare(request).blueprint
    assert whole.modules["foxglove"].machine is not None, "a module on no machine would not run"
    with pytest.raises(UserError, match="has no machine 'moon'"):
        prepare(replace(request, machine="moon"))


def test_in_virtual_time_it_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run_command(["run", "--foxglove", "follow-person", "--virtual-time", "--duration", "1"]) == 2
    assert "--virtual-time has no use for --foxglove" in capsys.readouterr().err
