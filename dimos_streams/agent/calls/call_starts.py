"""The beginning of calls: those that are on their way to the bridge, and not known yet by their ids."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from dimos_streams.agent.calls.call_memory import CallMemory
from dimos_streams.agent.calls.open_call import OpenCall
from dimos_streams.client.asking_again import ask_until_answered
from dimos_streams.errors import CallInDoubtError, CallRejectedError, SkillError
from dimos_streams.operator.robot_orders import NO_ORDER
from dimos_streams.skill import OnDuplicate
from dimos_streams.tool_stream.gateway import CallTerms, SkillGateway

_logger = logging.getLogger(__name__)


class CallStarts:
    """Begins the calls of one caller, and knows whether one is about to begin."""

    def __init__(
        self,
        gateway: SkillGateway,
        caller: str,
        memory: CallMemory,
        key_prefix: str,
        robot_order: Callable[[], int] = lambda: NO_ORDER,
        on_orders: Callable[[Mapping[str, int]], None] = lambda orders: None,
    ) -> None:
        """``key_prefix`` makes idempotency keys; it must differ from one start of the agent to the next.
        ``robot_order`` returns the number of the newest order to the robot that is known; ``on_orders`` gets those
        that the bridge has when it has refused a call: one that is not known may be why."""
        self._gateway = gateway
        self._caller = caller
        self._memory = memory
        self._key_prefix = key_prefix
        self._robot_order, self._on_orders = robot_order, on_orders
        self._count = 0
        self._under_way = 0
        self._all_over = asyncio.Event()
        self._next_over = asyncio.Event()

    @property
    def under_way(self) -> bool:
        """True if a call is about to begin."""
        return self._under_way > 0

    async def all_over(self) -> None:
        """Wait until no call is about to begin."""
        if self._under_way:
            await self._all_over.wait()

    def next_over(self) -> Coroutine[Any, Any, object]:
        """Return what waits until one of the calls that are about to begin now has begun, or is known not to."""
        return self._next_over.wait()

    async def start(
        self, call: OpenCall, on_duplicate: OnDuplicate | None, stands: Callable[[], bool] = lambda: True
    ) -> None:
        """Begin a call, which then has its id. Raises ``SkillError`` if it is refused, and ``CallInDoubtError`` if
        the bridge may have begun it and does not say so. If an answer is lost, the bridge is asked again as long as
        the call ``stands``: it may still begin.

        If this is cancelled, it is in doubt, too, whether the call begins nevertheless.
        """
        self._under_way += 1
        self._all_over.clear()
        self._count += 1
        key, order = f"{self._key_prefix}/{self._count}", self._robot_order()
        terms: CallTerms = {"on_duplicate": on_duplicate, "idempotency_key": key, "robot_order": order}
        try:
            call.note_begun(await self._begun(call, terms, stands))
        except CallRejectedError:
            await self._catch_up()
            raise
        except (asyncio.CancelledError, CallInDoubtError):
            call.ask_to_end("it was begun too late")
            self._memory.doubt(call)
            raise
        finally:
            self._under_way -= 1
            self._next_over.set()
            self._next_over = asyncio.Event()
            if not self._under_way:
                self._all_over.set()

    async def _catch_up(self) -> None:
        try:
            self._on_orders(await self._gateway.robot_orders())
        except SkillError as error:  # the next refusal asks again
            _logger.info("the orders to the robot can't be asked for: %s", error)

    async def _begun(self, call: OpenCall, terms: CallTerms, stands: Callable[[], bool]) -> str:
        """Return the id of a call that the bridge has begun. An answer that was lost is asked for again: the key says
        that it is the same call."""
        return await ask_until_answered(
            lambda: self._gateway.call(call.skill, call.arguments, caller=self._caller, **terms),
            "it is not known whether the call has begun; if so, it is ended",
            still=stands,
        )
