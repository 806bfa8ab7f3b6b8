"""What an operator approves is what he has seen, whichever way he says so."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
import requests
from websockets.asyncio.client import connect

from dimos_streams.cli.bridge_client.connection import BridgeAddress, open_gateway
from dimos_streams.cli.bridge_client.operator_commands import chat_command
from dimos_streams.client.http_gateway import HttpGateway
from dimos_streams.errors import ConflictError, UserError
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
            await until(made.agent.core.books.approvals.pending)
            (seen,) = made.agent.core.books.approvals.pending()
            assert any(f"approve {seen.id}@1`" in text for text in said.texts("update"))
            amended = await post(made, "amend", approval=seen.id, arguments={"description": "bob"}, revision=1)
            assert amended.json()["result"]["revision"] == 2
            await refused_everywhere(made, seen.id)
            assert made.agent.core.books.approvals.pending(), "nothing has begun"
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


def test_references_are_read_as_they_are_shown() -> None:
    assert ApprovalReference.of("robot1/agent-65-1") == ("robot1/agent-65-1", None)
    assert ApprovalReference.of("agent-65-1@12") == ("agent-65-1", 12)
    for wrong in ("", "@1", "a@", "a@x", "a@-1", "a@1@2", "a@٣", f"a@{'1' * 10_000}"):
        with pytest.raises(UserError, match="valid is ID or ID@REVISION") as refused:
            ApprovalReference.of(wrong)
        assert repr(wrong[:50])[:-1] in str(refused.value)
        assert len(str(refused.value)) < 300
