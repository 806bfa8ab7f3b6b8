"""Tools of a dimos server as skills, against a server that answers what a real one does."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import json
import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
import requests
from pydantic import ValidationError

from dimos_streams.blueprint import blueprint, module
from dimos_streams.blueprint.check import check
from dimos_streams.dimos_skills import module as dimos_module
from dimos_streams.dimos_skills.config import DimosSkillsConfig
from dimos_streams.dimos_skills.module import DimosSkills
from dimos_streams.dimos_skills.server import ToolServer
from dimos_streams.errors import SkillUnavailableError, UserError
from dimos_streams.messages.dimos_streams import Hold
from dimos_streams.module import RunContext, Services
from dimos_streams.skill import SkillInfo
from dimos_streams.testing import ModuleHarness
from dimos_streams.testing.harness_call import HarnessCall
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.hosting import host
from dimos_streams.tool_stream.liveness.directory import ModuleDirectory
from tests.dimos_skills.stand_in import CAPTURED, CAPTURED_STREAM, StandIn, stand_in
from tests.helpers import no_threads, run_virtual, until

STILL = ["wave", "nap", "server_status", "list_modules"]
STOPS = {"patrol": "stop_patrol"}
QUICK = {"still": STILL, "stops": STOPS, "stop_s": 20.0, "silence_s": 0.3, "poll_s": 0.1, "answer_s": 20.0}


@contextlib.asynccontextmanager
async def taken_in(server: StandIn, run_dir: Path | None = None, **config: Any) -> AsyncIterator[ModuleHarness]:
    context = RunContext(run_dir=run_dir, services=Services())
    settings = {**QUICK, "url": server.url, **config}
    async with ModuleHarness(DimosSkills, settings, name="dimos", context=context) as harness:
        if server.heard_by or config.get("url") is None:
            await until(lambda: harness.module.health == "ok" and harness.module.offered_skills())
        yield harness


def infos(harness: ModuleHarness) -> dict[str, SkillInfo]:
    directory = harness.module.context.services.get(ModuleDirectory)
    assert directory is not None
    return {info.name: info for _, info in directory.skills()}


async def patrolling(harness: ModuleHarness, server: StandIn) -> tuple[HarnessCall, str]:
    call = await harness.call("dimos_patrol", rounds=3)
    assert await call.answer() == "Patrolling"
    return call, server.tokens[-1]


def test_the_stand_in_answers_as_the_real_one_did() -> None:
    server = StandIn()
    for each in CAPTURED:
        request = each["request"]
        body = request if isinstance(request, str) else json.dumps(request)
        assert server.answer(body.encode()) == (each["status"], each["body"].encode()), request
    with server:
        with requests.get(server.url, stream=True, timeout=5) as stream:
            for number in (1, 2):
                server.progress("t-3", number, f"round {number} of 2")
            server.stopped()
            pieces = stream.iter_content(None)
            sent = ""
            while "dimos/tool_stopped" not in sent:
                sent += next(pieces).decode()
        assert CAPTURED_STREAM.startswith(sent)


@pytest.mark.feature("G3")
def test_tools_are_skills_with_schemas_policies_results_and_errors(tmp_path: Path) -> None:
    async def scenario(server: StandIn) -> None:
        picture = b"\xff\xd8 a picture"
        url = f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"
        server.answers["list_modules"] = lambda arguments, token: [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "sound"},
        ]
        async with taken_in(server, tmp_path, read_only=["wave"]) as harness:
            await until(lambda: len(infos(harness)) == 6)
            skills = infos(harness)
            assert "dimos_agent_send" not in skills
            wave, patrol, stop = (skills[f"dimos_{name}"] for name in ("wave", "patrol", "stop_patrol"))
            assert wave.description.startswith("Wave a hand.")
            assert wave.parameters["properties"]["times"] == {"default": 2, "title": "Times", "type": "integer"}
            assert (wave.moves, wave.read_only, wave.tags) == (False, True, ("dimos", "safe"))
            assert (patrol.moves, patrol.resources, patrol.on_duplicate) == (True, ("base",), "reject")
            assert (stop.may_move, stop.tags) == (False, ("dimos", "stop"))

            waved = await harness.call("dimos_wave", times=3, hand="right")
            said = {"message": "Waved 3 times with the right hand", "duration_ms": 100.2, "metadata": {"times": 3}}
            assert await waved.result() == {"message": said["message"], "value": said, "pictures": []}
            assert (await waved.closed()).text == said["message"]
            ((_, arguments, token),) = server.asked
            assert (arguments, token) == ({"times": 3, "hand": "right"}, f"dimos_streams:{waved.id}")
            seen = await (await harness.call("dimos_list_modules")).result()
            (path,) = seen["pictures"]
            assert (tmp_path / "pictures" / path.rpartition("/")[2]).read_bytes() == picture
            assert "'sound' too, which is not understood here" in seen["message"]

            asked = len(server.asked)
            wrong: list[tuple[dict[str, Any], Outcome, str]] = [
                ({"times": "many"}, Outcome.REJECTED, "times: it must be a whole number (given: 'many')"),
                ({"_mcp_context": {}}, Outcome.REJECTED, "_mcp_context: is not an argument of this skill"),
            ]
            for arguments, outcome, why in wrong:
                close = await (await harness.call("dimos_wave", **arguments)).closed()
                assert (close.outcome, why in close.text) == (outcome, True), close.text
            assert len(server.asked) == asked
            failed = await (await harness.call("dimos_wave", times=9)).closed()
            assert failed.text == "Error running tool 'wave': ValueError: the arm is tired"
            assert failed.outcome is Outcome.FAILED
            gone = await (await harness.call("dimos_nap", seconds=1)).closed()
            assert (gone.outcome, gone.text) == (Outcome.FAILED, "dimos has no tool 'nap' any more")
            busy = (
                "Cannot start 'nap': capability 'movement' is held by 'patrol'. Call the appropriate stop tool first."
            )
            server.answers["nap"] = lambda arguments, token: busy
            refused = await (await harness.call("dimos_nap", seconds=1)).closed()
            assert (refused.outcome, refused.text) == (Outcome.FAILED, busy)

    with stand_in() as server:
        asyncio.run(scenario(server))


@pytest.mark.slow
@pytest.mark.feature("G3")
def test_a_tool_that_goes_on_streams_until_dimos_says_that_it_has_stopped() -> None:
    async def scenario(server: StandIn) -> None:
        def early(arguments: dict[str, Any], token: str) -> str:
            server.stopped()  # of an earlier use, in vain
            server.progress(token, 1, "before the answer")
            server.tokens.append(token)
            return "Patrolling"

        def in_vain(arguments: dict[str, Any], token: str) -> str:
            server.stopped()
            return "No image available"

        async with taken_in(server) as harness:
            call, token = await patrolling(harness, server)
            server.progress("of somebody else", 7, "not for us", tool="other")
            server.progress(token, 1, "round 1")
            server.message("who joins hears this")
            server.progress(token, 2, "round 2")
            server.stopped("other")
            server.stopped()
            assert await call.result() == {
                "message": "patrol has stopped; it said last: round 2",
                "value": None,
                "pictures": [],
            }
            assert call.texts("update") == ["Patrolling", "round 1", "round 2"]
            assert call.events[2].data["progress"] == 1

            server.answers["patrol"] = early
            call = await harness.call("dimos_patrol")
            for text in ("before the answer", "Patrolling"):  # two connections, so in either order
                await call.wait_for(lambda event, text=text: event.text == text)  # type: ignore[misc]
            await asyncio.sleep(0.6)
            assert [event.type for event in call.events][-1] == "update", "an earlier use's stop has ended it"
            server.stopped()
            assert (await call.closed()).outcome is Outcome.COMPLETED

            server.answers["patrol"] = in_vain
            call = await harness.call("dimos_patrol")
            assert (await call.closed()).text == "patrol has stopped; it said last: No image available"

    with stand_in() as server:
        asyncio.run(scenario(server))


@pytest.mark.slow
@pytest.mark.feature("G3")
def test_a_cancel_calls_the_tool_that_ends_it_and_what_nothing_ends_is_seen_to_go_on() -> None:
    async def scenario(server: StandIn) -> None:
        def broken(arguments: dict[str, Any], token: str) -> str:
            raise OSError("the arm is stuck")

        async with taken_in(server) as harness:
            call, _ = await patrolling(harness, server)
            call.cancel("enough")
            close = await call.closed()
            assert (close.outcome, close.text) == (Outcome.CANCELLED, "enough")
            assert call.texts("update")[-1] == "[stop_patrol: Patrol is stopping]"
            assert [name for name, *_ in server.asked] == ["patrol", "stop_patrol"]

            server.answers["nap"] = lambda arguments, token: str(server.released.wait(10))
            call = await harness.call("dimos_nap", seconds=9)
            await until(lambda: server.asked[-1][0] == "nap")
            call.cancel("enough")
            assert (await call.closed()).outcome is Outcome.CANCELLED
            assert call.texts("update") == ["[dimos has no tool that ends nap: it may go on there]"]

        async with taken_in(server, stop_s=0.2) as harness:
            server.answers["stop_patrol"] = broken
            call, _ = await patrolling(harness, server)
            call.cancel("enough")
            update = await call.wait_for(lambda event: "the arm is stuck" in event.text)  # it is asked again
            assert "could not be asked to end" in update.text
            await asyncio.sleep(0.3)  # longer than `stop_s`
            assert call.events[-1].type == "update"
            server.stopped()
            assert (await call.closed()).outcome is Outcome.CANCELLED

    with stand_in() as server:
        asyncio.run(scenario(server))


@pytest.mark.feature("G3", "E10")
def test_a_module_that_stops_waits_no_longer_for_what_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_CANCEL_BOUND_S", 0.1)

    async def scenario(server: StandIn) -> None:
        del server.answers["stop_patrol"]
        async with taken_in(server) as harness:
            call, _ = await patrolling(harness, server)
        assert call.events[-1].outcome is Outcome.CANCELLED
        assert call.events[-1].text.startswith("the module is stopping; it did not end within ")
        await until(lambda: len(asyncio.all_tasks()) == 1)

    with stand_in() as server:
        asyncio.run(scenario(server))


@pytest.mark.slow
@pytest.mark.feature("G3", "B3")
def test_a_hold_ends_what_may_move_and_lets_nothing_begin_but_what_stops() -> None:
    async def scenario(server: StandIn) -> None:
        async with taken_in(server) as harness:
            call, _ = await patrolling(harness, server)
            harness.feed("hold", Hold(utime=1, seq=1, source="agent", hold=True, valid_s=30.0, reason="wet floor"))
            close = await call.closed()
            assert close.outcome is Outcome.FAILED
            assert close.text.startswith("'patrol' was ended because agent (wet floor) holds the robot still")
            assert server.asked[-1][0] == "stop_patrol"
            asked = len(server.asked)
            refused = await (await harness.call("dimos_patrol")).closed()
            assert refused.text == "'patrol' may move the robot, which agent (wet floor) holds still"
            assert len(server.asked) == asked
            for allowed in ("dimos_stop_patrol", "dimos_wave"):
                assert (await (await harness.call(allowed)).closed()).outcome is Outcome.COMPLETED
            harness.feed("hold", Hold(utime=2, seq=2, source="agent", hold=False))
            await patrolling(harness, server)
            server.stopped()

    with stand_in() as server:
        asyncio.run(scenario(server))


@pytest.mark.feature("G3", "B3")
def test_a_hold_that_comes_while_a_call_waits_for_the_connection_lets_nothing_begin() -> None:
    async def scenario(server: StandIn) -> None:
        async with taken_in(server) as harness:
            cast("DimosSkills", harness.module)._connected.clear()  # as while it is made anew
            call = await harness.call("dimos_patrol")
            await asyncio.sleep(0.05)
            harness.feed("hold", Hold(utime=1, seq=1, source="operator", hold=True, valid_s=30.0))
            await until(lambda: cast("DimosSkills", harness.module)._holders())
            cast("DimosSkills", harness.module)._connected.set()
            assert (await call.closed()).text == "'patrol' may move the robot, which operator holds still"
            assert not server.asked

    with stand_in() as server:
        asyncio.run(scenario(server))


@pytest.mark.feature("G3", "B3")
def test_what_only_sounds_as_if_it_stops_may_move() -> None:
    async def scenario(server: StandIn) -> None:
        async with taken_in(server, stops={}) as harness:
            stop = infos(harness)["dimos_stop_patrol"]
            assert (stop.moves, stop.resources, stop.tags) == (True, ("base",), ("dimos", "motion"))
            call, _ = await patrolling(harness, server)
            call.cancel("enough")
            await call.closed()
            assert server.asked[-1][0] == "stop_patrol"
            harness.feed("hold", Hold(utime=1, seq=1, source="operator", hold=True, valid_s=30.0))
            refused = await (await harness.call("dimos_stop_patrol")).closed()
            assert refused.text == "'stop_patrol' may move the robot, which operator holds still"
            assert len(server.asked) == 2

    with stand_in() as server:
        asyncio.run(scenario(server))


@pytest.mark.slow
@pytest.mark.feature("G3")
def test_a_server_that_is_absent_vanishes_and_comes_back(
    settled_log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dimos_module, "_OPEN_S", 0.2)

    async def scenario(server: StandIn) -> None:
        server.start()
        server.stop()
        async with taken_in(server, url=server.url) as harness:
            gone = f"dimos at {server.url} can't be reached: Connection refused"
            await until(lambda: harness.module.health == gone)
            assert not harness.module.offered_skills()
            server.released.clear()
            server.start()
            await until(lambda: harness.module.health == "ok" and server.heard_by)

            server.answers["nap"] = lambda arguments, token: str(server.released.wait(10))
            patrol, token = await patrolling(harness, server)
            nap = await harness.call("dimos_nap", seconds=9)
            await until(lambda: server.asked[-1][0] == "nap")
            server.progress(token, 1, "round 1")
            await patrol.wait_for(lambda event: event.text == "round 1")
            settled_log.clear()
            server.stop()
            close = await nap.closed()
            assert close.outcome is Outcome.FAILED
            assert close.text.startswith(f"dimos at {server.url} can't be reached: ")
            close = await patrol.closed()
            assert close.text.startswith("nothing was heard of 'patrol' for 0.3 s after the connection to dimos at")
            assert "could not be asked to end: dimos at" in patrol.texts("update")[-1]
            assert infos(harness).keys() >= {"dimos_wave", "dimos_patrol"}
            await until(lambda: harness.module.health == gone)
            lines = [record.getMessage() for record in settled_log.records if record.levelno >= logging.WARNING]
            assert lines == [f"dimos at {server.url} can't be heard: the server ended the stream"]
            refused = await (await harness.call("dimos_wave")).closed(5)
            assert (refused.outcome, refused.text) == (Outcome.FAILED, gone)

            server.released.clear()
            server.start()
            await until(lambda: harness.module.health == "ok" and server.heard_by)
            patrol, token = await patrolling(harness, server)
            server.progress(token, 2, "round 2")
            server.stopped()
            assert (await patrol.result())["message"] == "patrol has stopped; it said last: round 2"

    server = StandIn()
    try:
        with settled_log.at_level(logging.INFO):
            asyncio.run(scenario(server))
    finally:
        server.stop()


@pytest.mark.feature("G3", "F5")
def test_a_stream_that_breaks_by_itself_is_heard_again() -> None:
    async def scenario(server: StandIn) -> None:
        async with taken_in(server, silence_s=20.0) as harness:
            patrol, token = await patrolling(harness, server)
            broken = list(server._listeners)
            for listener in broken:
                listener.put(None)  # nothing else breaks
            await until(lambda: server.heard_by and not any(each in broken for each in server._listeners))
            server.progress(token, 2, "round 2")
            server.stopped()
            assert (await patrol.result())["message"] == "patrol has stopped; it said last: round 2"

    with stand_in() as server:
        asyncio.run(scenario(server))


def _body(body: bytes, arguments: dict[str, Any], token: str) -> bytes:
    return body


@pytest.mark.slow
@pytest.mark.feature("G3", "F6")
def test_a_server_that_answers_nonsense(settled_log: pytest.LogCaptureFixture) -> None:
    ok = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"hello"}]}}'
    wrong: list[tuple[bytes, str]] = [
        (b"<html>", "answers with no JSON-RPC: HTTP 200, '<html>'"),
        (b"[]", "answers with no JSON-RPC: HTTP 200, '[]'"),
        (b"\x80\x04\x95K\x01.", "answers with no JSON-RPC: HTTP 200"),
        (b'{"jsonrpc":"2.0","id":%d,"result":NaN}', "answers with no JSON-RPC"),
        (b'{"jsonrpc":"2.0","id":%d,"result":[]}', "answers with no result of request"),
        (ok.replace(b"%d", b"77777"), "answers with no result of request"),
        (b'{"jsonrpc":"2.0","id":%d,"result":{"content":7}}', "content of type int, not a list"),
        (b'{"jsonrpc":"2.0","id":%d,"error":"no"}', "refuses: no ()"),
        (b"[" * 9 * 2**20, "answers with more than 8388608 bytes; the rest was not read"),
    ]

    async def scenario(server: StandIn) -> None:
        async with taken_in(server, answer_s=0.3) as harness:
            server.answers["wave"] = lambda arguments, token: str(server.released.wait(10))
            close = await (await harness.call("dimos_wave")).closed()
            assert close.text == f"dimos at {server.url} has not answered within 0.3 s"

        async with taken_in(server, answer_s=20.0) as harness:
            for body, why in wrong:
                server.answers["wave"] = functools.partial(_body, body)
                close = await (await harness.call("dimos_wave")).closed()
                assert (close.outcome, why in close.text) == (Outcome.FAILED, True), close.text
                assert len(close.text) < 500
                assert "\n" not in close.text
            server.answers["wave"] = lambda arguments, token: "hello"
            server.headers["Content-Encoding"] = "gzip"
            close = await (await harness.call("dimos_wave")).closed()
            assert close.text.startswith(f"dimos at {server.url} answers with the encoding 'gzip'")
            server.headers.clear()

            call, token = await patrolling(harness, server)
            settled_log.clear()
            for frame in (b"\x80\x04\x95K\x01.", b"[]", b'{"method":"notifications/progress","params":7}', b"{"):
                server.send(frame)
            server.send({"method": "dimos/tool_stopped", "params": {"tool_name": 7}})
            server.send({"method": "notifications/progress", "params": {"progressToken": True}})
            server.progress(token, 1, "x" * 2**19)
            long = await call.wait_for(lambda event: event.text.startswith("xxx"))
            assert long.text.endswith(" of 524288 characters are left out here]")
            for number in range(2000):
                server.progress(token, number, str(number))
            server.stopped()
            await call.closed()
            passed = [text for text in call.texts("update") if text.isdigit()]
            left_out = [int(text.split()[0][1:]) for text in call.texts("update") if "came too fast" in text]
            assert len(passed) + sum(left_out) == 2000
            assert passed == sorted(passed, key=int)
            (line,) = (record.getMessage() for record in settled_log.records if record.levelno >= logging.WARNING)
            assert "says what is no notice" in line

    with stand_in() as server:
        asyncio.run(scenario(server))


@pytest.mark.slow
@pytest.mark.feature("G3", "F6")
def test_a_list_with_tools_that_can_not_be_skills() -> None:
    sound = {"name": "wave", "description": "Wave.", "inputSchema": {"properties": {}}}
    tools: list[Any] = [
        sound,
        {"name": "../etc", "inputSchema": {}},
        {"name": "deep", "inputSchema": {"properties": {"x": {"$ref": "https://example.org/x"}}}},
        {"name": "text", "inputSchema": {"type": "string"}},
        {"name": "long", "description": "y" * 20_000, "inputSchema": {"properties": {"x": {"enum": ["x" * 20_000]}}}},
        {"name": "typed", "inputSchema": 7},
        {"name": "forged", "inputSchema": {"properties": {"x\napproved": {}}}},
        {"name": "nap", "_meta": {"dimos/uses": ["movement"]}},
        {"inputSchema": {}},
        7,
    ]

    async def scenario(server: StandIn) -> None:
        server.tools = tools
        async with taken_in(server, stops={"nap": "rest"}) as harness:
            assert set(harness.module.offered_skills()) == {"dimos_wave", "dimos_nap"}
            warnings = json.loads(harness.module.state_json)["warnings"]
            for words in (
                "still has 'server_status', and the server no such tool",
                "stops has 'rest', and the server no such tool",
                "tool '../etc' is no skill: its name is not of letters",
                "tool 'deep' is no skill: its $ref 'https://example.org/x' is not local",
                "tool 'text' is no skill: it describes no object",
                "tool 'long' is no skill: its description and schema have ",
                "tool 'typed' is no skill: inputSchema",
                r"tool 'forged' is no skill: its parameter is 'x\napproved'; valid: 1 to 200 printable characters",
                "'nap' is said to be still, but dimos says it uses movement: it may move",
            ):
                assert any(words in warning for warning in warnings), (words, warnings)
            assert infos(harness)["dimos_nap"].moves
            server.tools = [{**sound, "name": f"t{number}"} for number in range(1000)]
            await until(lambda: len(harness.module.offered_skills()) == 200)
            server.list_body = b'{"jsonrpc":"2.0","id":1,"result":{"tools":7}}'
            await until(lambda: "no result of request" in harness.module.health)
            assert len(harness.module.offered_skills()) == 200
            server.list_body = None
            await until(lambda: harness.module.health == "ok")

    with stand_in() as server:
        asyncio.run(scenario(server))


def test_not_in_virtual_time() -> None:
    async def scenario() -> None:
        async with ModuleHarness(DimosSkills, name="dimos"):
            pass

    with pytest.raises(UserError, match="module 'dimos' talks to a server, which keeps no virtual time"):
        run_virtual(scenario())


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"url": "9990"}, "'9990' is no address of a server: 'http://127.0.0.1:9990/mcp' is one"),
        ({"url": "http://me:secret@host/mcp"}, "is no address of a server"),
        ({"tools": ["a b"]}, "'a b' is no name of a tool"),
        ({"read_only": ["wave"]}, "read_only has 'wave', which is not in `still`"),
        ({"prefix": "dimos/"}, "String should match pattern"),
        ({"max_calls": 0}, "greater than or equal to 1"),
    ],
)
def test_settings_that_can_not_be(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError) as raised:
        DimosSkillsConfig(**settings)
    assert why in str(raised.value)


@pytest.mark.parametrize(("beside", "warned"), [(True, False), (False, True)])
def test_check_does_not_warn_of_names_that_only_the_server_knows(beside: bool, warned: bool) -> None:
    modules = [module("dimos_streams.agent.module:Agent", config={"skills": ["dimos_*"]})]
    modules += [module(DimosSkills)] if beside else []
    problems = check(blueprint("beside", *modules))
    assert any("'dimos_*' in skills means no skill" in problem.text for problem in problems) is warned
    assert not [problem for problem in problems if problem.severity == "error" and "dimos" in problem.text]


def test_the_page_has_each_setting_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "dimos-skills.md").read_text()
    table = page.partition("| setting |")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", table, re.MULTILINE))
    described = {name: value for names, values in rows.items() for name, value in _paired(names, values)}
    assert list(described) == list(DimosSkillsConfig.model_fields)
    for name in ("answer_s", "longest_s", "stop_s", "silence_s", "poll_s", "max_calls"):
        assert described[name] == f"{DimosSkillsConfig.model_fields[name].default:g}"
    assert json.loads(described["tools"]) == list(DimosSkillsConfig.model_validate({}).tools)


def _paired(names: str, values: str) -> list[tuple[str, str]]:
    listed = re.findall(r"`(\w+)`", names)
    return list(zip(listed, values.split(", ") if len(listed) > 1 else [values.strip(" `")], strict=True))


def test_a_server_that_no_thread_can_ask_is_unavailable() -> None:
    async def scenario() -> None:
        refused = pytest.raises(SkillUnavailableError, match=r"can't be asked: .* no more threads")
        with no_threads(), contextlib.closing(ToolServer("http://127.0.0.1:1", threads=1)) as server, refused:
            await server.request("tools/list", {}, within_s=1.0)

    asyncio.run(scenario())
