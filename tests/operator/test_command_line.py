"""The operator's commands on the command line, run in this process against a served bridge."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from dimos_streams.cli.bridge_client.connection import BridgeAddress, open_gateway
from dimos_streams.cli.consoles import monitor_console
from dimos_streams.cli.consoles.chat_commands import chat_command
from dimos_streams.cli.consoles.monitor_console import Lines
from dimos_streams.cli.entry import run_command
from dimos_streams.cli.terminal.output import write
from dimos_streams.errors import SkillError, UserError
from dimos_streams.module import Module, ModuleConfig, RunContext, Services
from dimos_streams.skill import skill
from tests.bridge.monitor.toy_agent import ToyAgent
from tests.bridge.serving import Served, served
from tests.helpers import until

SEVERAL = "several agents may be meant; name one of them: robot1/agent, robot2/agent"


class Console:
    """A shell at a bridge with agents."""

    def __init__(self, bridge: Served, capsys: pytest.CaptureFixture[str]) -> None:
        self.bridge = bridge
        self.capsys = capsys

    def add(self, namespace: str = "") -> ToyAgent:
        context = RunContext(namespace=namespace, services=Services())

        async def add() -> ToyAgent:
            agent = ToyAgent(name=f"{namespace}agent", context=context)
            await self.bridge.scene.add(agent)
            await self.bridge.scene.offered(f"{namespace.replace('/', '_')}say")
            return agent

        return self.bridge.run(add())

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = run_command([*arguments, "--url", self.bridge.url])
        reported = self.capsys.readouterr()
        return code, reported.out, reported.err


class Parrot(Module):
    """It has skills of an agent's names, and is none."""

    config: ModuleConfig

    @skill(audience="operator")
    async def say(self, text: str) -> str:
        """Repeat it."""
        return text

    @skill(audience="operator")
    async def pause(self) -> str:
        """Be quiet."""
        return "quiet"


@pytest.fixture
def console(capsys: pytest.CaptureFixture[str]) -> Iterator[Console]:
    with served() as bridge:
        yield Console(bridge, capsys)


def on_loop(console: Console, agent: ToyAgent, id: str) -> None:
    async def ask() -> None:
        agent.ask(id)

    console.bridge.run(ask())


@pytest.mark.slow
def test_pause_resume_step_and_abort(console: Console) -> None:
    assert console("pause")[0::2] == (2, "error: no agent is here: no module of the run is one\n")
    agent = console.add()
    assert console("resume") == (1, "", "error: agent 'agent': the agent is not paused\n")
    assert console("pause", "--reason", "look") == (0, "pause is done\n", "")
    assert console("resume", "--reason", "seen") == (0, "resume is done\n", "")
    assert console("step") == (0, "step is done\n", "")
    assert console("step", "on")[0] == 0
    assert console("step", "19a0-3")[0] == 0
    valid = "valid are on, off, once, or the ID of a call that waits, as its note shows it"
    assert console("step", "twice") == (2, "", f"error: 'twice' is no step: {valid}\n")
    assert console("abort", "--rollback", "--reason", "fire")[0] == 0
    agent.held = ()
    assert console("pause") == (1, "pause is done\n", ""), "no gate has said that it holds"
    assert console("abort")[0] == 1
    del agent.commands[-2:]
    assert agent.commands == [
        ("pause", {"reason": "look"}),
        ("resume", {"reason": "seen"}),
        ("step", {"mode": "once"}),
        ("step", {"mode": "on"}),
        ("step", {"mode": "once", "waiting": "19a0-3"}),
        ("abort", {"rollback": True, "reason": "fire"}),
    ]


@pytest.mark.slow
def test_what_only_the_bridge_finds_wrong_is_typed_wrong_and_named_as_it_was_typed(console: Console) -> None:
    skill = console("call", "sw🍎")
    assert (skill[0], skill[2].startswith("error: SKILL: valid: 1 to 200 letters of ASCII")) == (2, True)
    of_hub = "error: --robot: it is for a fleet's hub, and this is the bridge of one run: leave it out\n"
    assert console("call", "say", "--robot", "r1") == (2, "", of_hub)
    for assignment in ("", " = ", "=3"):
        wrong = f"error: {assignment!r} is not of the form MODULE.SETTING=VALUE\n"
        assert console("set", assignment) == (2, "", wrong)
    long = console("cancel", "--all", "--reason", "x" * 5000)
    assert (long[0], long[1], long[2].startswith("error: --reason: it must have at most")) == (2, "", True)


@pytest.mark.slow
def test_a_command_for_safety_is_one_request(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = console.add()
    asked: list[str] = []
    send = requests.Session.send

    def counted(self: requests.Session, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        asked.append(f"{request.method} {request.path_url.partition('?')[0]}")
        return send(self, request, **kwargs)

    monkeypatch.setattr(requests.Session, "send", counted)
    for command in (["pause"], ["abort"], ["pause", "--agent", "agent"]):
        assert console(*command)[0] == 0
        assert asked == ["POST /calls"]
        asked.clear()
    console("say", "stop", "--timeout", "0.2")
    assert asked[:2] == ["POST /calls", "GET /tool_streams"], "the first one stops, the other one shows"
    asked.clear()
    console.add("robot1/")
    assert console("abort")[0::2] == (
        2,
        "error: several agents may be meant; name one of them: agent, robot1/agent (--agent NAME)\n",
    )
    assert asked == ["POST /calls"]
    assert [name for name, _ in agent.commands] == ["pause", "abort", "pause"]


@pytest.mark.slow
def test_a_module_that_only_talks_is_no_agent(console: Console) -> None:
    async def add() -> None:
        await console.bridge.scene.add(Parrot(name="parrot"))
        await console.bridge.scene.offered("pause")

    console.bridge.run(add())
    assert console("pause")[0::2] == (2, "error: no agent is here: no module of the run is one\n")
    assert console("say", "hello")[0] == 2
    assert not any(offered["agent"] for offered in console.bridge.get("/skills").json())


@pytest.mark.slow
def test_approvals_are_listed_and_decided(console: Console) -> None:
    agent = console.add()
    assert console("approvals") == (0, "", "nothing waits for approval\n")
    on_loop(console, agent, "a17")
    code, out, _ = console("approvals")
    assert (code, out.splitlines()[1].split()[:3]) == (0, ["a17@1", "agent", "follow"])
    assert json.loads(console("approvals", "--json")[1])[0]["arguments"] == {"description": "ann"}
    assert console("approve", "b")[0::2] == (
        2,
        "error: no pending approval has an id that begins with 'b' (pending: a17@1)\n",
    )
    for wrong, problem in (("steps=abc", "steps: "), ("nix=1", "nix: ")):
        code, _, err = console("approve", "a1", "--arg", wrong)
        assert (code, err.count("\n")) == (2, 1)
        assert f"error: skill 'follow' cannot take these arguments: {problem}" in err
    reported = console("approve", "a1", "--arg", "steps=3")
    assert reported == (0, "follow [a17@1] of agent: approved with steps=3\n", "")
    assert agent.commands[-1][1]["arguments"] == {"description": "ann", "steps": 3}
    on_loop(console, agent, "a18")
    assert console("reject", "a18", "--reason", "not now") == (0, "follow [a18@1] of agent: rejected\n", "")
    assert agent.commands[-1][1]["reason"] == "not now"
    assert agent.commands[-1][1]["arguments"] is None


@pytest.mark.slow
def test_what_was_decided_is_json_for_programs(console: Console) -> None:
    agent = console.add()
    for command, decided in (("approve", "approved"), ("reject", "rejected")):
        on_loop(console, agent, "a1")
        code, out, err = console(command, "a1", "--json")
        assert (code, err) == (0, "")
        assert json.loads(out) == {"text": f"follow [a1@1] of agent: {decided}", "result": "decide is done"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["approve", "reject", "undo", "cancel", "pause", "resume", "step", "abort", "forget"]
)
def test_each_command_of_an_operator_speaks_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command([command, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


@pytest.mark.slow
def test_of_several_agents_one_is_named(console: Console) -> None:
    one, two = console.add("robot1/"), console.add("robot2/")
    code, _, err = console("pause")
    assert (code, err) == (2, f"error: {SEVERAL} (--agent NAME)\n")
    assert console("pause", "--agent", "robot2")[0] == 0
    assert console("pause", "--agent", "robto1/agent")[2].startswith(
        "error: no agent is called 'robto1/agent'; did you mean 'robot1/agent'?"
    )
    assert (one.commands, two.commands) == ([], [("pause", {"reason": ""})])
    on_loop(console, one, "x1")
    on_loop(console, two, "x2")
    assert len(console("approvals")[1].splitlines()) == 3
    assert len(console("approvals", "--agent", "robot1")[1].splitlines()) == 2
    assert "several approvals" in console("reject", "x")[2]
    assert console("reject", "x2") == (0, "follow [x2@1] of robot2/agent: rejected\n", "")


def heard(agent: ToyAgent) -> list[str]:
    return [entry.text for entry in agent.conversation]


@pytest.mark.slow
def test_what_is_said_begins_with_the_name_of_one_of_several(console: Console) -> None:
    one, two = console.add("robot1/"), console.add("robot2/")
    one.busy_s = two.busy_s = 0.0
    assert console("say", "robot2: move 0.3")[0] == 0
    assert console("say", "robot2: turn", "--agent", "robot1")[0] == 0
    assert (heard(one), heard(two)) == (["robot2: turn"], ["robot2: move 0.3"])
    assert console("say", "move")[0::2] == (2, f"error: {SEVERAL} (--agent NAME, or begin with 'NAME: ')\n")
    assert console("say", "robot3: move")[0::2] == (
        2,
        "error: no agent is called 'robot3' (there are: robot1/agent, robot2/agent)\n",
    )
    assert console("say", f"{'long' * 99}: move")[0::2] == console("say", "oh well: move")[0::2]


@pytest.mark.slow
def test_in_a_chat_with_several_each_line_begins_with_a_name(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = console.add("robot1/"), console.add("robot2/")
    one.busy_s = two.busy_s = 0.0
    lines = ["robot2: move", "move", "/pause", "/now robot1: halt", "/quit"]
    typed = "".join(f"{line}\n" for line in lines).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed), encoding="utf-8"))
    code, out, _ = console("chat")
    assert (code, heard(two)) == (2, ["robot2: move"])
    console.bridge.run(until(lambda: heard(one) == ["robot1: halt"]))
    for said in (
        "begin what you say with the name of one",
        f"{SEVERAL} (begin with ",
        f"{SEVERAL} (chat --agent NAME)",
    ):
        assert out.count(said) == 1
    assert two.commands == []


@pytest.mark.slow
def test_the_same_in_a_chat(console: Console) -> None:
    agent = console.add()
    on_loop(console, agent, "a1")

    async def talk() -> list[str]:
        async with open_gateway(BridgeAddress(console.bridge.url)) as gateway:
            reported = []
            lines = (
                "pause",
                "step on",
                "step 19a0-3",
                "abort rollback",
                "approvals",
                "approve a1 steps=2",
                "approvals",
            )
            for line in lines:
                name, *words = line.split()
                reported.append(await chat_command(gateway, "say", name, words))
            agent.held = ()
            for unheld in ("pause", "abort"):
                with pytest.raises(SkillError, match=f"{unheld} is done"):
                    await chat_command(gateway, "say", unheld, [])
            for wrong in ("step twice", "approve", "pause now"):
                name, *words = wrong.split()
                with pytest.raises(UserError, match="/help"):
                    await chat_command(gateway, "say", name, words)
            with pytest.raises(UserError, match="no pending approval"):
                await chat_command(gateway, "say", "reject", ["a1", "no"])
            return reported

    reported = asyncio.run(talk())
    assert reported[:4] == ["pause is done", "step is done", "step is done", "abort is done"]
    assert reported[4].split()[:3] == ["a1@1", "agent", "follow"]
    assert reported[5:] == ["follow [a1@1] of agent: approved with steps=2", "nothing waits for approval"]


@pytest.mark.slow
@pytest.mark.parametrize("of", [[], ["--agent", "say"]])
def test_monitor_shows_messages_until_the_bridge_ends(
    console: Console, monkeypatch: pytest.MonkeyPatch, of: list[str]
) -> None:
    agent = console.add()
    shown: list[str] = []

    def write_and_note(line: str) -> None:
        write(line)
        shown.append(line.split()[0])

    monkeypatch.setattr(monitor_console, "write", write_and_note)

    async def happen() -> None:
        await until(lambda: agent.reports)
        agent.emit("text", text="hello")
        agent.ask("a1")
        await until(lambda: {"module", "agent", "approval"} <= set(shown))
        await console.bridge.scene.bridge.monitor.stop()

    threading.Thread(target=lambda: console.bridge.run(happen())).start()
    code, out, err = console("monitor", *of)
    assert (code, "has ended" in err) == (1, True)
    lines = out.splitlines()
    assert "module worker: ok" in lines
    assert 'agent  text  text="hello"' in lines
    assert "agent agent: idle (1 mission, 0 calls, offline)" in lines
    assert 'approval a1@1: agent asks for follow(description="ann")  approval: ask' in lines


def test_lines_show_only_what_is_new() -> None:
    lines = Lines()
    modules = {"type": "change", "change": {"modules": [{"name": "gate", "health": "ok"}]}}
    assert list(lines.of(modules)) == ["module gate: ok"]
    assert list(lines.of(modules)) == []
    assert list(lines.of({"type": "gap", "lost": 7})) == ["7 messages were lost"]


def test_where_nothing_answers_the_commands_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["pause"], ["approvals"], ["monitor"]):
        assert run_command([*command, "--url", "http://127.0.0.1:9"]) == 1
        assert "no bridge answers" in capsys.readouterr().err
