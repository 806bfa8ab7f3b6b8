"""Which bridge a command asks that names none: never that of somebody else without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from dimos_streams.cli.bridge_client.connection import bridge_of_run, find_bridge, find_run_with
from dimos_streams.cli.bridge_client.robot_orders import order_targets
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.terminal.log_files import find_run_dir
from dimos_streams.common.process.loopback import BRIDGE_PORT
from dimos_streams.errors import UserError
from dimos_streams.runtime import registry
from tests.runtime.run_records import living_record, process_record


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIMOS_STREAMS_STATE_DIR", str(tmp_path))


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("bridge_on", "words"),
    [
        ("", "has no bridge that could be asked$"),
        ("brain-side", "has no bridge that could be asked: it is on machine 'brain-side'; .* --url"),
    ],
    ids=["no bridge", "on another machine"],
)
def test_a_living_run_without_a_bridge_is_never_taken_for_another_at_the_usual_port(
    bridge_on: str, words: str, named: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    record = living_record().model_copy(update={"port": None, "bridge": None, "bridge_on": bridge_on})
    registry.write(record)
    with pytest.raises(UserError, match=f"^run {record.run_id} {words}"):
        find_bridge(BridgeChoice(run=record.run_id if named else None))
    assert find_bridge(BridgeChoice(port=9)).url == "http://127.0.0.1:9"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("old", "new", "is_part"),
    [
        ({}, {}, False),
        ({}, {"bridge_on": "brain-side"}, False),
        ({"bridge_on": "brain-side"}, {"bridge_on": "brain-side"}, True),
        ({"bridge_on": "brain-side"}, {"bridge_on": "other-side"}, False),
        ({"bridge_on": "brain-side"}, {"bridge_on": "brain-side", "blueprint": "arm"}, False),
    ],
    ids=["no bridge", "of a whole run", "its own", "on another machine", "of another blueprint"],
)
def test_a_newer_run_without_a_bridge_is_passed_over_with_a_word_unless_it_is_a_part_of_the_same(
    old: dict[str, str], new: dict[str, str], is_part: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = living_record().model_copy(update={"port": 9, **old})
    registry.write(asked)
    newer = living_record().model_copy(update={"port": None, **new})
    registry.write(newer)
    assert find_bridge(BridgeChoice()).url == "http://127.0.0.1:9"
    said = f"run {newer.run_id} is newer and has no bridge: {asked.run_id} is asked\n"
    assert capsys.readouterr().err == ("" if is_part else said)


def test_where_no_run_lives_it_is_said_which_bridge_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    usual = f"http://127.0.0.1:{BRIDGE_PORT}"
    said = f"no run of yours lives: whatever bridge answers at {usual} is asked\n"
    assert (find_bridge(BridgeChoice()).url, capsys.readouterr().err) == (usual, said)
    assert ([each.name for each in order_targets(BridgeChoice())], capsys.readouterr().err) == ([usual], said)
    assert (find_bridge(BridgeChoice(port=BRIDGE_PORT)).url, capsys.readouterr().err) == (usual, "")


@pytest.mark.parametrize(("bus", "is_part"), [("memq://", True), ("udpm://239.255.76.67:7001?ttl=0", False)])
def test_a_part_here_has_the_bridge_of_another_part_here_which_is_ordered_once(bus: str, is_part: bool) -> None:
    brain = living_record().model_copy(update={"port": 9, "bridge_on": "brain-side"})
    robot = living_record().model_copy(update={"bridge_on": "brain-side", "bus_url": bus})
    for record in (brain, robot):
        registry.write(record)
    url = "http://127.0.0.1:9"
    asked = [(each.name, each.address and each.address.url) for each in order_targets(BridgeChoice())]
    assert asked == [(brain.run_id, url), *([] if is_part else [(robot.run_id, None)])]
    own = bridge_of_run(robot)
    assert (own and own.url) == (url if is_part else None)


@pytest.mark.parametrize("ports", [(9, None), (9, 8)])
def test_a_name_of_several_parts_with_one_bridge_is_that_of_one_run(
    ports: tuple[int | None, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [living_record().model_copy(update={"port": port, "bridge_on": "brain-side"}) for port in ports]
    for record in parts:
        registry.write(record)
    choice = BridgeChoice(run=parts[0].blueprint)
    if None in ports:
        assert [each.address and each.address.url for each in order_targets(choice)] == ["http://127.0.0.1:9"]
        assert (find_bridge(choice).url, capsys.readouterr().err) == ("http://127.0.0.1:9", "")
    else:
        with pytest.raises(UserError, match="several runs are called"):
            order_targets(choice)
        assert find_bridge(choice).url == "http://127.0.0.1:8"
        assert "several runs are called" in capsys.readouterr().err


@pytest.mark.parametrize(("bridge_on", "other_is_meant"), [("brain-side", True), ("", False)])
def test_of_the_parts_here_the_one_is_meant_that_has_the_module(
    bridge_on: str, other_is_meant: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    robot, brain = (
        living_record().model_copy(update={"bridge_on": bridge_on, "processes": (process_record(name),)})
        for name in ("gate", "agent")
    )
    for record in (robot, brain):
        registry.write(record)
    meant = robot if other_is_meant else brain
    assert find_run_with("gate", None).run_id == meant.run_id
    assert find_run_dir(None, "gate") == meant.run_dir
    assert bool(capsys.readouterr().err) is not other_is_meant
    assert (find_run_with("agent", None).run_id, find_run_dir(None)) == (brain.run_id, brain.run_dir)
