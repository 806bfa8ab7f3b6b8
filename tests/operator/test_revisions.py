"""What an operator approves is what that operator has seen, whichever way it is said."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import requests
from websockets.asyncio.client import connect

from dimos_streams.agent.policies.decided_approvals import DecidedApprovals
from dimos_streams.cli.bridge_client.connection import BridgeAddress, open_gateway
from dimos_streams.cli.bridge_client.operator_commands import decide
from dimos_streams.cli.consoles.chat_commands import chat_command
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.errors import ConflictError, DimosStreamsError, UserError
from dimos_streams.foxglove.orders import DecisionRequest, Operator
from dimos_streams.operator.approval_reference import ApprovalReference
from tests.agent.stage import Stage, calling, script, stage
from tests.bridge.monitor.test_socket import Socket
from tests.helpers import until


async def post(made: Stage, skill: str, **arguments: Any) -> requests.Response:
    body = {"skill": skill, "agent": "", "arguments": arguments}
    return await asyncio.to_thread(requests.post, f"{made.bridge.url}/calls?wait=close", json=body, timeout=10)


async def chat(made: Stage, line: str) -> str:
    name, *words = line.split()
    async with open_gateway(BridgeAddress(made.bridge.url)) as gateway:
        return await chat_command(gateway, "agent", name, words)


@pytest.mark.slow
@pytest.mark.feature("C5")
def test_nobody_approves_what_another_operator_has_amended_unseen(tmp_path: Path) -> None:
    async def scenario() -> None:
        turns = script(tmp_path / "turns.json", calling("follow_person", description="ann"), {"text": "I follow."})
        config = {**turns, "approval": {"rules": [{"skill": "follow_person"}]}}
        async with stage(config, http=True) as made:
            said = await made.say("follow ann")
            await until(made.agent.core.gate_state.approvals.pending)
            (seen,) = made.agent.core.gate_state.approvals.pending()
            await until(lambda: any(f"approve {seen.id}@1`" in text for text in said.texts("update")))
            amended = await post(made, "amend", approval=seen.id, arguments={"description": "bob"}, revision=1)
            assert amended.json()["result"]["revision"] == 2
            await refused_everywhere(made, seen.id)
            assert made.agent.core.gate_state.approvals.pending(), "nothing has begun"
            assert f"{seen.id}@2" in await chat(made, "approvals")
            assert f"{seen.id}@2" in await chat(made, f"approve {seen.id}")
            await until(lambda: any(call.skill == "follow_person" for call in made.bridge.broker.ledger.calls.open))

    asyncio.run(scenario())


async def refused_everywhere(made: Stage, id: str) -> None:
    answer = await post(made, "decide", approval=id, decision="approve", revision=1)
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (409, "urn:dimos-streams:problem:conflict")
    assert (problem["current"]["id"], problem["current"]["revision"]) == (id, 2)
    assert problem["current"]["arguments"]["description"] == "bob"
    says = f"approval {id!r} has revision 2, not 1: follow_person"
    assert says in problem["detail"]
    with pytest.raises(ConflictError, match="revision 2, not 1"):
        await chat(made, f"approve {id}@1")
    viewer = Operator(HttpGateway(made.bridge.url, rng=random.Random(1)), "foxglove")
    with pytest.raises(ConflictError, match="revision 2, not 1"):
        await viewer.approve(DecisionRequest(approval=f"{id}@1"))
    async with connect(f"{made.bridge.url.replace('http', 'ws')}/monitor") as connection:
        console = Socket(connection)
        await until(lambda: console.agent("agent"))
        error = await console.ask(command="decide", approval=id, decision="approve", revision=1)
        assert (error["problem"], says in error["text"]) == ("conflict", True)
        await console.close()


@contextlib.asynccontextmanager
async def asked(tmp_path: Path, *turns: dict[str, Any]) -> AsyncIterator[tuple[Stage, str]]:
    """An agent whose call waits for approval, and the id of that."""
    config = {**script(tmp_path / "turns.json", *turns, {"text": "ok"}), "approval": {"rules": [{"skill": "*"}]}}
    async with stage(config, http=True) as made:
        await made.say("go")
        yield made, await waiting(made)


async def waiting(made: Stage) -> str:
    await until(made.agent.core.gate_state.approvals.pending)
    return made.agent.core.gate_state.approvals.pending()[0].id


@pytest.mark.slow
@pytest.mark.feature("C5")
def test_of_what_is_decided_everybody_is_told_by_whom_and_what_became_of_the_call(tmp_path: Path) -> None:
    async def scenario() -> None:
        turns = calling("follow_person", description="ann"), calling("move", distance_m=1)
        async with asked(tmp_path, *turns) as (made, id):
            await post(made, "decide", approval=id, decision="approve", reason="go on")
            holds = "approved already, by 'http' (go on)"
            await until(lambda: made.agent.core.gate_state.approvals.find(id)[0].call_id)
            call_id = made.agent.core.gate_state.approvals.find(id)[0].call_id
            assert (await chat(made, f"approve {id}")).endswith(f": {holds}; call {call_id} of it has begun")
            with pytest.raises(ConflictError) as refused:
                await chat(made, f"reject {id} no")
            assert str(refused.value).endswith(
                f"is {holds}: it can't be rejected any more; call {call_id} of it has begun"
            )
            moving = await waiting(made)
            made.skills.left.set()
            await until(lambda: made.agent.core.gate_state.approvals.find(id)[0].call_end)
            assert f"{holds}; call {call_id} of it has ended: completed: ann has left" in await chat(
                made, f"approvals {id}"
            )
            viewer = Operator(HttpGateway(made.bridge.url, rng=random.Random(1)), "foxglove")
            with pytest.raises(ConflictError, match=r"by 'http'.*has ended: completed: ann has left"):
                await viewer.reject(DecisionRequest(approval=id))
            await viewer.reject(DecisionRequest(approval=moving, reason="stay"))
            answer = await post(made, "decide", approval=moving, decision="approve")
            assert answer.status_code == 409
            assert "rejected already, by 'foxglove' (stay): it can't be approved" in answer.json()["detail"]

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.feature("C5")
def test_a_whole_id_is_not_the_beginning_of_another_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asked(tmp_path, calling("move", distance_m=1)) as (made, first):
            book = made.agent.core.gate_state.approvals
            asking = [asyncio.create_task(book.ask("move", {"distance_m": number})) for number in range(2, 11)]
            await until(lambda: len(book.pending()) == 10)
            tenth = book.pending()[-1].id
            assert tenth == f"{first}0"
            for view in book.pending()[:-1]:
                await post(made, "decide", approval=view.id, decision="delete")
            with pytest.raises(ConflictError, match="deleted already, by 'http'"):
                await chat(made, f"approve {first}")
            assert await waiting(made) == tenth
            book.decided = DecidedApprovals()
            for forgotten in (first, f"{first}@1", f"{tenth[:-1]}@1"):
                with pytest.raises(UserError, match="no approval that is remembered is called"):
                    await chat(made, f"approve {forgotten}")
            assert await waiting(made) == tenth
            book.close()
            await asyncio.wait(asking)

    asyncio.run(scenario())


ODD = ["", " ", "/", "a/b/../c", "..", "wó", "submit plan", "plan-1", "0123456789abcdef", "x" * 10_000, "\n", "a@@1"]


@pytest.mark.slow
def test_odd_references_are_told_what_would_be_valid_at_every_door(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asked(tmp_path, calling("move", distance_m=1)) as (made, id):
            viewer = Operator(HttpGateway(made.bridge.url, rng=random.Random(1)), "foxglove")
            for odd in ODD:
                begins = repr(odd[:90])[:-1]
                over_http = (await post(made, "decide", approval=odd, decision="approve")).json()["text"]
                texts = [over_http]
                async with open_gateway(BridgeAddress(made.bridge.url)) as gateway:
                    with pytest.raises(DimosStreamsError) as refused:
                        await decide(gateway, odd, "approve")
                texts.append(str(refused.value))
                if odd and len(odd) <= 200:  # without one, the only one is meant; longer ones are no request
                    with pytest.raises(DimosStreamsError) as refused:
                        await viewer.approve(DecisionRequest(approval=odd))
                    texts.append(str(refused.value))
                for text in texts:
                    assert begins in text, (odd, text)
                    assert id in text or "valid is ID or ID@REVISION" in text, (odd, text)
                    assert len(text) < 500
            gone = (await post(made, "decide", approval=f"agent-12ab-{7}", decision="approve")).json()["text"]
            assert "of an earlier process of the agent" in gone
            assert await waiting(made) == id

    asyncio.run(scenario())


def test_references_are_read_as_they_are_shown() -> None:
    assert ApprovalReference.of("robot1/agent-65-1") == ("robot1/agent-65-1", None)
    assert ApprovalReference.of("agent-65-1@12") == ("agent-65-1", 12)
    for wrong in ("", "@1", "a@", "a@x", "a@-1", "a@0", "a@1@2", "a@٣", f"a@{'1' * 10_000}"):
        with pytest.raises(UserError, match="valid is ID or ID@REVISION") as refused:
            ApprovalReference.of(wrong)
        assert repr(wrong[:50])[:-1] in str(refused.value)
        assert len(str(refused.value)) < 300
