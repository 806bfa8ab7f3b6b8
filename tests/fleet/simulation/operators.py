"""Operators who order through the hub what comes into their heads, and ask again until they hear what came of it."""

from __future__ import annotations

import asyncio
import itertools
import random
from dataclasses import dataclass, field
from typing import Any

from dimos_streams import clock
from dimos_streams.common.tasks import OwnedTasks
from dimos_streams.fleet.protocol import DEFAULT_EXPIRY_S
from tests.fleet.simulation.asgi import Answer
from tests.fleet.simulation.hub import HubDownError, SimulatedHub
from tests.fleet.simulation.plan import Step

SKILLS = ("go", "go", "follow", "grab", "jump")
_WAITS = ("", "?wait=answer&timeout_s=1", "?wait=close&timeout_s=5", "?wait=close&timeout_s=20")
_AGAIN_S = (0.3, 1.0, 3.0)
_LEAST_S = 2.0
"""Minimum time, in seconds, for which a command is valid, even if whoever asks waits for less."""


@dataclass
class Attempt:
    """One request of an order. Times are on the loop's clock."""

    path: str
    at: float
    over: float = float("inf")
    answer: Answer | None = None
    """None if the hub was down, or killed before it answered."""

    @property
    def is_final(self) -> bool:
        """True if it was answered, and nothing more comes of it."""
        if self.answer is None or self.answer.status >= 500:
            return False
        found = self.answer.json
        return not isinstance(found, dict) or found.get("confirmed", True) is True

    @property
    def kind(self) -> str:
        """The kind of problem that it was answered with; empty if there is none."""
        if self.answer is None:
            return "no answer"
        found = self.answer.json
        return str(found.get("type", "")).rpartition(":")[2] if isinstance(found, dict) else ""

    def __str__(self) -> str:
        said = "nothing" if self.answer is None else f"{self.answer.status} {self.answer.content[:250]!r}"
        return f"{self.at:.3f}-{self.over:.3f} {self.path} {said}"


@dataclass
class Order:
    """An order, and its requests. All of a call have one idempotency key, which is the tag of what is to be done."""

    what: str
    robot: str
    key: str
    body: dict[str, Any] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    seen_at: float = float("inf")
    """The time from which stops are not those that a release is of; infinite if it is of any."""

    @property
    def began(self) -> float:
        return self.attempts[0].at

    def is_valid_at(self, at: float, grace_s: float = 0.0) -> bool:
        """Return whether a robot may carry out at a time, and for ``grace_s`` more, what one of its requests asks."""
        return any(each.at <= at <= each.at + self._valid_s(each) + grace_s for each in self.attempts)

    def _valid_s(self, attempt: Attempt) -> float:
        _, _, timeout_s = attempt.path.partition("timeout_s=")
        lease_wait_s: float = self.body.get("lease_wait_s", 0.0)
        return min(DEFAULT_EXPIRY_S, lease_wait_s + max(_LEAST_S, float(timeout_s or DEFAULT_EXPIRY_S)))

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The calls that were given as answers."""
        good = [each.answer for each in self.attempts if each.answer is not None and each.answer.status < 300]
        return [answer.json for answer in good]

    def __str__(self) -> str:
        return f"{self.what} {self.robot} {self.key} {self.body}: {'; '.join(map(str, self.attempts))}"


class Operators:
    """Give orders to the robots of a hub."""

    def __init__(self, hub: SimulatedHub, seed: int) -> None:
        self.orders: list[Order] = []
        self.tasks = OwnedTasks()
        self._hub, self._random = hub, random.Random(f"operators {seed}")
        self._numbers = itertools.count(1)

    @property
    def calls(self) -> list[Order]:
        """The orders that begin calls."""
        return [order for order in self.orders if order.what == "call"]

    def act(self, step: Step) -> None:
        """Begin an order; its end is awaited beside."""
        rng = self._random
        if step.what == "again" and self.calls:
            order = rng.choice(self.calls[-6:])
        elif step.what in ("call", "again"):
            order = self._new_call(step.robot)
        else:
            order = Order(step.what.partition(" seen")[0], step.robot, f"o{next(self._numbers)}")
            if step.what == "release seen":
                self.tasks.spawn(self._release_seen(order, step.for_s), name=str(order))
                return
            self.orders.append(order)
        self.tasks.spawn(self._insist(order), name=str(order))

    async def _release_seen(self, order: Order, after_s: float) -> None:
        """Look which stops there are, and release the robot from these a while later."""
        try:
            answer = await self._hub.ask("GET", f"/robots/{order.robot}/robots")
        except HubDownError:
            return
        order.seen_at = clock.monotonic()
        if answer.status == 200:
            order.body = {"seen": [stop["utime"] for stop in answer.json["stopped"]["stops"]]}
            await asyncio.sleep(after_s)
            self.orders.append(order)
            await self._insist(order)

    def _new_call(self, robot: str) -> Order:
        rng, key = self._random, f"k{next(self._numbers)}"
        skill, is_named = rng.choice(SKILLS), rng.random() < 0.7
        arguments: dict[str, Any] = {"tag": key, "seconds": rng.choice((0.1, 0.5, 2.0, 6.0))}
        body: dict[str, Any] = {
            "skill": skill if is_named else f"{robot}_{skill}",
            "arguments": arguments,
            "caller": "me",
        }
        body |= {"robot": robot} if is_named else {}
        body |= {"lease_wait_s": 3.0} if rng.random() < 0.3 else {}
        order = Order("call", robot, key, {**body, "idempotency_key": key})
        self.orders.append(order)
        return order

    async def _insist(self, order: Order) -> None:
        for wait_s in (*_AGAIN_S, None):
            attempt = await self.ask(order)
            if wait_s is None or attempt.is_final:
                return
            await asyncio.sleep(wait_s)

    async def ask(self, order: Order) -> Attempt:
        """Make one request of an order."""
        path, body = self._request(order)
        attempt = Attempt(path, clock.monotonic())
        order.attempts.append(attempt)
        try:
            attempt.answer = await self._hub.ask("POST", path, body)
        except HubDownError:
            attempt.answer = None
        attempt.over = clock.monotonic()
        return attempt

    def _request(self, order: Order) -> tuple[str, dict[str, Any]]:
        match order.what:
            case "call":
                return f"/calls{self._random.choice(_WAITS)}", order.body
            case "cancel":
                began = [answer for call in self.calls for answer in call.answers if call.robot == order.robot]
                call_id = began[-1].get("call_id") if began else "none"
                return f"/calls/{call_id}/cancel", {}
            case "cancel all":
                return "/calls/cancel", {"robot": order.robot}
        return f"/robots/{order.what}", {"robot": order.robot, **order.body}
