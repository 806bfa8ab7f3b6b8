"""MCP clients see the skills of all robots at a hub, and call them as models."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dimos_streams.fleet.batches import encoded_event
from dimos_streams.tool_stream.gateway import CallView
from tests.hub.answering_robot import answering
from tests.hub.serving import Robot, ServedHub, added, event, served_hub


def ask(hub: ServedHub, method: str, **params: Any) -> dict[str, Any]:
    """The result of a request without a session."""
    answer = hub.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).json()
    assert "result" in answer, answer
    result: dict[str, Any] = answer["result"]
    return result


def use(hub: ServedHub, name: str, **arguments: Any) -> dict[str, Any]:
    return ask(hub, "tools/call", name=name, arguments=arguments)


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_client_finds_the_tools_of_each_robot_and_calls_one_as_a_model(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    one, two = (Robot(name, token) for name, token in added(database, "r1", "r2").items())
    with served_hub(database) as hub, ThreadPoolExecutor(1) as pool:
        one.report(hub, "move")
        two.report(hub, "turn")
        with answering(hub, one, two) as (first, second):
            assert {each["connected"] for each in hub.get("/robots").json()} == {True}
            names = [tool["name"] for tool in ask(hub, "tools/list")["tools"]]
            assert names == ["r1_move", "r2_turn", "skill_updates", "get_call", "list_calls", "cancel_call"]
            first.replies["/calls"] = (201, {"call_id": "c1"})
            asked = pool.submit(use, hub, "r1_move", distance_m=1)
            assert first.took.acquire(timeout=20)
            one.ship(hub, encoded_event(1, event(1, type="open")), encoded_event(2, event(2, "on it")))
            answer = asked.result()
            assert answer["structuredContent"]["call_id"] == "c1"
            assert answer["content"][0]["text"].startswith("on it")
            (command,) = first.taken
            assert (command["role"], command["body"]["caller"]) == ("model", "mcp/without-session")
            assert command["body"]["skill"] == "move"
            assert second.taken == []
            refusal = {
                "type": "urn:dimos-streams:problem:call-rejected",
                "status": 409,
                "detail": "needs an approval",
            }
            second.replies["/calls"] = (409, refusal)
            refused = use(hub, "r2_turn")
            assert (refused["isError"], refused["content"][0]["text"]) == (True, "needs an approval")
            operators = use(hub, "get_call", call_id="c1")
            assert operators["isError"], "it was begun by `me`, and its skill is nobody's that is known"
    for each in (first, second):
        each.join()


@pytest.mark.feature("H2")
def test_a_robot_with_many_calls_keeps_no_other_one_s_from_being_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dimos_streams.hub.mcp_calls._CALLS", 3)
    monkeypatch.setattr("dimos_streams.hub.mcp_calls._CANCEL_WAIT_S", 0.0)
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    one, two = (Robot(name, token) for name, token in added(database, "r1", "r2").items())
    with served_hub(database) as hub:
        for robot in (one, two):
            robot.report(hub, "s", motions=["s"])
        open_calls = [event(1, type="open", call_id=f"c{number}") for number in range(4)]
        one.ship(hub, encoded_event(1, open_calls[0]))
        two.ship(hub, *(encoded_event(number, call) for number, call in enumerate(open_calls[1:], 1)))
        going_on = use(hub, "cancel_call", call_id="all")["structuredContent"]["going_on"]
    assert [call["call_id"] for call in going_on] == ["c0", "c1", "c2", "c3"]


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_no_robot_takes_a_name_of_another_one(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    odd, sound, third = (Robot(name, token) for name, token in added(database, "z", "z_b", "q").items())
    with served_hub(database) as hub, ThreadPoolExecutor(1) as pool:
        sound.report(hub, "turn", "z_b_dance")
        odd.report(hub, "b_turn", "b_look", "turn")
        third.report(hub, "z_b_turn", "go\nok", "z_b_fly")
        with answering(hub, odd, sound) as (first, second):
            notes = {each["name"]: each["notes"] for each in hub.get("/robots").json()}
            assert notes["z_b"] == []
            (left_out,) = notes["q"]
            assert left_out.startswith(r"1 of its skills is left out: its name is 'go\nok'; valid: ")
            assert notes["z"] == [
                "its skills b_look, b_turn are called by `robot` and `skill` only: with its name before them, they"
                " are another robot's names"
            ]
            names = [tool["name"] for tool in ask(hub, "tools/list")["tools"]]
            assert names[:-4] == ["z_turn", "z_b_turn", "z_b_z_b_dance"]
            listed = [each["name"] for each in hub.get("/skills").json()]
            assert listed == ["q_z_b_turn", "q_z_b_fly", *names[:-4]]
            second.replies["/calls"] = (201, {"call_id": "c1"})
            asked = pool.submit(use, hub, "z_b_turn")
            assert second.took.acquire(timeout=20)
            sound.ship(hub, encoded_event(1, event(1, type="open")), encoded_event(2, event(2, "on it")))
            assert not asked.result()["isError"]
            for given, skill in (({"skill": "z_b_turn"}, "turn"), ({"skill": "z_b_dance"}, "z_b_dance")):
                assert hub.post("/calls", given).status_code == 201
                assert second.taken[-1]["body"]["skill"] == skill
            assert first.taken == []
            for name in ("z_b_look", "z_b_fly"):
                assert hub.post("/calls", {"skill": name}).status_code == 404, "it begins with the name of a robot"
            first.replies["/calls"] = (201, {"call_id": "c2"})
            assert hub.post("/calls", {"robot": "z", "skill": "b_turn"}).json() == {"call_id": "c2"}
    for each in (first, second):
        each.join()


@pytest.mark.slow
@pytest.mark.feature("H2")
def test_a_call_that_was_begun_here_is_its_robot_s_whatever_another_one_says(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    one, two = (Robot(name, token) for name, token in added(database, "r1", "r2").items())
    with served_hub(database) as hub, ThreadPoolExecutor(1) as pool:
        one.report(hub, "move")
        two.report(hub, "move")
        two.ship(hub, encoded_event(1, event(1, type="open")))
        with answering(hub, one) as (first,):
            assert [each["connected"] for each in hub.get("/robots").json()] == [True, False]
            first.replies["/calls"] = (201, {"call_id": "c1"})
            asked = pool.submit(use, hub, "r1_move")
            assert first.took.acquire(timeout=20)
            one.ship(hub, encoded_event(1, event(1, type="open")), encoded_event(2, event(2, "on it")))
            assert asked.result()["content"][0]["text"].startswith("on it")
    first.join()


@pytest.mark.feature("H2")
def test_what_one_robot_says_of_its_call_keeps_nobody_from_the_list_of_all(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    one, two = (Robot(name, token) for name, token in added(database, "r1", "r2").items())
    with served_hub(database) as hub:
        two.ship(
            hub, encoded_event(1, event(1, type="open", call_id="sound", arguments={"a": 1}, resources=["base"]))
        )
        wrong: dict[str, Any] = {"parent": 5, "arguments": "none", "resources": {"base": 1}, "on_loss": ["stop"]}
        one.ship(hub, encoded_event(1, event(1, type="open", call_id="odd", **wrong)))
        sound, odd = (CallView.model_validate(each) for each in hub.get("/calls").json())
        assert (sound.arguments, sound.resources) == ({"a": 1}, ("base",))
        assert (odd.parent, odd.arguments, odd.resources, odd.on_loss) == ("", {}, (), "stop")
        assert not use(hub, "list_calls")["isError"]
        assert not use(hub, "cancel_call", call_id="all")["isError"]


@pytest.mark.feature("H2")
def test_a_call_of_which_nothing_can_be_learned_keeps_nobody_from_hearing_of_the_others(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    one, two = (Robot(name, token) for name, token in added(database, "r1", "r2").items())
    with served_hub(database) as hub, ThreadPoolExecutor(1) as pool:
        one.report(hub, "s", motions=["s"])
        two.report(hub, "s", "think", motions=["s"])
        for robot in (one, two):  # nobody can tell which of the two is meant
            robot.ship(hub, encoded_event(1, event(1, type="open", call_id="same")))
        two.ship(hub, encoded_event(2, event(1, type="open", call_id="other")))
        two.ship(hub, encoded_event(3, event(1, type="open", call_id="still", skill="think")))
        with answering(hub, two) as (answers,):
            asked = pool.submit(use, hub, "cancel_call", call_id="all", reason="enough")
            assert answers.took.acquire(timeout=20)
            two.ship(hub, encoded_event(4, event(2, type="close", call_id="other", outcome="cancelled")))
            answer = asked.result()
            (order,) = answers.taken  # not for the call that does not move, and is not the client's
            assert (order["path"], order["body"]) == (
                "/calls/cancel",
                {
                    "calls": ["same", "other"],
                    "caller": "mcp/without-session",
                    "reason": "enough (by 'mcp/without-session')",
                },
            )
            single = use(hub, "cancel_call", call_id="still")
            assert (single["isError"], "was begun by 'me'" in single["content"][0]["text"]) == (True, True)
    answers.join()
    report = answer["structuredContent"]
    assert report["ended"] == ["other"]
    assert [call["call_id"] for call in report["going_on"]] == ["same", "same"]
    assert "it is not known whether it has ended: several robots have a call" in report["going_on"][0]["text"]


@pytest.mark.feature("H2")
def test_calls_and_updates_have_the_names_of_the_tools(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    one, two = (Robot(name, token) for name, token in added(database, "r1", "r2").items())
    with served_hub(database) as hub:
        for robot, id in ((one, "c1"), (two, "c2")):
            robot.report(hub, "move")
            robot.ship(
                hub,
                encoded_event(1, event(1, type="open", call_id=id, skill="move")),
                encoded_event(2, event(2, "on it", call_id=id, skill="move")),
            )
        (listed,) = use(hub, "list_calls", skill="r1_move")["structuredContent"]["calls"]
        assert (listed["call_id"], listed["robot"], listed["skill"]) == ("c1", "r1", "move")
        all_lines = use(hub, "list_calls", skill="move")["structuredContent"]["text"].splitlines()
        assert [line.partition("(")[0] for line in all_lines] == ["c2  r2_move", "c1  r1_move"]
        assert use(hub, "get_call", call_id="c2")["structuredContent"]["text"].startswith("c2  r2_move(")
        read = use(hub, "skill_updates", call_id="c1", after=0, wait_s=0)["structuredContent"]
        assert read["text"].splitlines()[0] == "r1_move (call c1) says: on it"


@pytest.mark.feature("H2")
@pytest.mark.parametrize("said", [{"x": 1}, [1], {"call_id": 5}, {"call_id": "c" * 10_000}])
def test_a_robot_s_answer_that_is_no_call_s_is_told_as_that(tmp_path: Path, said: Any) -> None:
    database = f"sqlite:///{tmp_path}/hub.sqlite"
    robot = Robot("r1", added(database, "r1")["r1"])
    with served_hub(database) as hub:
        robot.report(hub, "move")
        with answering(hub, robot) as (answers,):
            assert [each["connected"] for each in hub.get("/robots").json()] == [True]
            answers.replies["/calls"] = (201, said)
            begun = use(hub, "r1_move")
            answers.replies["/calls"] = (201, {"call_id": "c9"})
            assert hub.post("/calls", {"skill": "r1_move"}).status_code == 201
            answers.replies["/calls/c9"] = (200, said)
            looked_up = use(hub, "get_call", call_id="c9")
    answers.join()
    for answer in (begun, looked_up):
        assert answer["isError"]
        assert answer["content"][0]["text"].startswith("robot 'r1' ")
