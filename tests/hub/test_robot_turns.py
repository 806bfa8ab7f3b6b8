"""One robot does not keep a hub from others, whatever it sends and on how many connections."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from dimos_streams import clock
from dimos_streams.hub.http import refusing
from dimos_streams.hub.http.robot_tokens import RobotTokens
from dimos_streams.hub.http.robot_turns import RobotTurns
from tests.helpers import until

pytestmark = pytest.mark.feature("H2")


class _App:
    """An app that answers each request once it is told to."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.times: list[float] = []
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun.append(scope["path"])
        self.times.append(clock.monotonic())
        if scope["path"].endswith("commands"):
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await self.go_on.wait()


def _ask(
    app: Callable[[Scope, Receive, Send], Awaitable[None]], path: str, method: str = "POST"
) -> asyncio.Task[None]:
    async def receive() -> Message:
        raise AssertionError("nobody reads the body here")

    async def send(message: Message) -> None:
        pass

    async def ask() -> None:
        scope = {"type": "http", "method": method, "path": f"/fleet/robots/{path}", "headers": []}
        await app(scope, receive, send)

    return asyncio.create_task(ask())


@pytest.mark.virtual_time
async def test_a_robot_has_few_requests_in_hand_and_others_do_not_wait_for_the_rest() -> None:
    app = _App()
    turns = RobotTurns(app, lambda: 0.0)
    asked = [_ask(turns, f"r1/{what}") for what in ("batches", "reports") for _ in range(5)]
    asked += [_ask(turns, f"r1/{what}") for what in ("answers", "nothing") for _ in range(3)]
    asked += [_ask(turns, "r1/commands", "GET") for _ in range(6)]  # these are open once they are answered
    asked += [_ask(turns, "r1/position", "GET") for _ in range(5)]
    asked.append(_ask(turns, "r2/batches"))
    await asyncio.sleep(1.0)
    begun = Counter(path.removeprefix("/fleet/robots/") for path in app.begun)
    others = sum(begun.pop(f"r1/{what}", 0) for what in ("answers", "nothing"))
    first = {"r1/batches": 3, "r1/reports": 3, "r1/commands": 6, "r1/position": 4, "r2/batches": 1}
    assert (begun, others) == (first, 4), "what reads is not behind bodies that may be half sent"
    app.go_on.set()
    await asyncio.gather(*asked)
    assert len(app.begun) == len(asked), "nothing is refused"


@pytest.mark.virtual_time
async def test_a_robot_that_does_not_keep_to_the_pace_of_its_batches_is_kept_to_it() -> None:
    app = _App()
    app.go_on.set()
    turns = RobotTurns(app, lambda: 0.5)
    asked = [_ask(turns, "r1/batches") for _ in range(6)]
    await asyncio.gather(*asked)
    passed = [time - app.times[0] for time in app.times]
    assert passed == pytest.approx([0.0, 0.0, 0.0, 0.5, 1.0, 1.5], abs=0.01)
    await asyncio.sleep(60.0)
    await asyncio.gather(*(_ask(turns, "r1/batches") for _ in range(3)))
    assert app.times[-1] - app.times[-3] == pytest.approx(0.0, abs=0.01), "a robot that was silent may send at once"


def test_tokens_of_many_strangers_are_looked_up_two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusing, "READ_WAITS_S", 60.0)

    async def work() -> None:
        looked_up: list[str] = []
        answer = asyncio.Event()
        loop = asyncio.get_running_loop()

        def of_token(token: str) -> str:
            looked_up.append(token)
            asyncio.run_coroutine_threadsafe(answer.wait(), loop).result(30.0)
            return ""

        storage: Any = SimpleNamespace(robots=SimpleNamespace(of_token=of_token))
        sent: list[int] = []

        async def send(message: Message) -> None:
            sent.extend([message["status"]] if message["type"] == "http.response.start" else [])

        with ThreadPoolExecutor(4) as threads:
            app = RobotTokens(_App(), _App(), storage, threads)
            asked = []
            for token in range(5):
                headers = [(b"authorization", b"Bearer %d" % token)]
                scope = {"type": "http", "path": "/fleet/robots/r1/position", "headers": headers}
                asked.append(asyncio.create_task(app(scope, lambda: asyncio.sleep(0, {}), send)))
            await until(lambda: len(looked_up) == 2)
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(looked_up) == 2
            answer.set()
            await asyncio.gather(*asked)
        assert (len(looked_up), sent) == (5, [403] * 5)

    asyncio.run(work())
