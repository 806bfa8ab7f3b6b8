"""Modules that misbehave on demand."""

from __future__ import annotations

import asyncio
import time

from dimos_streams.errors import UserError
from dimos_streams.messages.std_msgs import String
from dimos_streams.module import Module, ModuleConfig
from dimos_streams.skill import Call, skill
from dimos_streams.streams import In, Out


class TalkerConfig(ModuleConfig):
    period_s: float = 0.05
    fail_at_start: str = ""
    fail_after: int = 0
    stop_takes_s: float = 0.0


class Talker(Module):
    config: TalkerConfig
    words: Out[String]

    async def start(self) -> None:
        if self.config.fail_at_start == "user":
            raise UserError("the port is taken; choose another")
        if self.config.fail_at_start:
            raise RuntimeError(self.config.fail_at_start)

    async def run(self) -> None:
        number = 0
        while True:
            number += 1
            self.words.publish(String(data=f"{self.name} {number}"))
            if number == self.config.fail_after:
                raise RuntimeError("out of words")
            await asyncio.sleep(self.config.period_s)

    async def stop(self) -> None:
        await asyncio.sleep(self.config.stop_takes_s)


class Listener(Module):
    words: In[String]
    heard: Out[String]

    async def run(self) -> None:
        async for message in self.words:
            self.heard.publish(message)

    @skill
    async def wait(self, call: Call) -> None:
        """Wait for ever."""
        await call.update("waiting")
        await asyncio.Event().wait()


async def swallow_cancellations() -> None:
    """Go on for ever, whoever cancels it."""
    while True:
        try:
            await asyncio.sleep(0.5)
        except BaseException:
            continue


class DeafAtWork(Module):
    async def run(self) -> None:
        await swallow_cancellations()

    @skill
    async def patrol(self, call: Call) -> None:
        """Patrol."""
        await call.update("patrolling")
        await swallow_cancellations()


class DeafAtItsEnd(Module):
    async def stop(self) -> None:
        await swallow_cancellations()


class SlowConfig(ModuleConfig):
    blocks: bool


class SlowToStart(Module):
    """It blocks in its start, or waits for what does not come."""

    config: SlowConfig

    async def start(self) -> None:
        if self.config.blocks:
            time.sleep(100)  # noqa: ASYNC251
        await self.connect()

    async def connect(self) -> None:
        await asyncio.Event().wait()
