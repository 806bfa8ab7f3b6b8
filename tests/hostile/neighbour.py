"""A neighbour on the bus that forges every message of ours, as fast as it can: a program of its own.

``python -m tests.hostile.neighbour BUS_URL SECONDS SEED [RATE]`` listens for the names of modules and calls that are
really there, and sends in their name, and in invented ones, what nobody should send: hostile numbers, sizes, names
and instances. It does not copy what only those know who read a call's events: the instance of its module. Nor does it
order what anybody may order: it cancels no call, holds no robot, and begins no skill that there is.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Callable

from dimos_streams import clock
from dimos_streams.bus import Bus, create_bus
from dimos_streams.errors import MessageError
from dimos_streams.messages.codec import channel_name, decode, encode
from dimos_streams.messages.dimos_streams import (
    Hold,
    ModuleStatus,
    SkillCall,
    SkillCancel,
    ToolStreamEvent,
    ToolStreamRequest,
)
from dimos_streams.messages.nav_msgs import Odometry
from dimos_streams.messages.sensor_msgs import BatteryState
from dimos_streams.tool_stream.protocol.channels import CALLS, CANCELS, EVENTS, REQUESTS, STATUS
from tests.hostile.test_forged_heartbeats import exponential, skills
from tests.hostile.texts import HOSTILE_JSON

_NUMBERS = (-(2**31), -1, 0, 1, 2, 3, 5, 100, 1024, 2**16, 2**30, 2**31 - 1)
_TIMES = (-(2**63), -1, 0, 1, 2**53, 2**63 - 1)
_FLOATS = (float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 1e308)
_NAMES = ("", "..", "a" * 500, "robot\nERROR forged", "\u202e\x1b[2J", "no/such", "bridge", "unknown")
_TEXTS = (*_NAMES, "x" * 2_000, "x" * 50_000)
_TYPES = ("open", "update", "progress", "close", "gap", "", "x" * 300)
_BATCH = 64
_REMEMBERED = 64

Message = tuple[str, bytes]


class Neighbour:
    """Makes messages, of what it has heard and of its own; the same seed and the same bus give the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._modules: list[str] = ["bridge"]
        self._calls: dict[str, ToolStreamEvent] = {}
        self._made = 0
        self.forge: tuple[Callable[[], Message], ...] = (
            self.heartbeat,
            self.heartbeat_with_skills,
            self.event,
            self.event,
            self.event,
            self.request,
            self.call,
            self.cancel,
            self.hold,
            self.odometry,
        )

    def listen(self, bus: Bus) -> None:
        """Learn names; the bus must be open."""
        bus.subscribe(STATUS, self._on_status)
        bus.subscribe(EVENTS, self._on_event)

    def message(self) -> Message:
        """The next one."""
        return self._random.choice(self.forge)()

    def _on_status(self, channel: str, data: bytes) -> None:
        try:
            name = decode(ModuleStatus, data).module
        except MessageError:
            return
        if name not in self._modules and len(self._modules) < _REMEMBERED and not name.startswith("forged"):
            self._modules.append(name)

    def _on_event(self, channel: str, data: bytes) -> None:
        try:
            event = decode(ToolStreamEvent, data)
        except MessageError:
            return
        if '"_instance":"' in event.data_json and len(event.data_json) < 10_000:  # one of its own has a space there
            self._calls.pop(event.call_id, None)
            self._calls[event.call_id] = event
            if len(self._calls) > _REMEMBERED:
                del self._calls[next(iter(self._calls))]

    def _one(self, *values: object) -> object:
        return self._random.choice(values)

    def _new(self) -> str:
        self._made += 1
        return f"forged{self._made}"

    def _module(self) -> str:
        return str(self._one(self._random.choice(self._modules), self._new(), self._random.choice(_NAMES)))

    def _call_id(self) -> str:
        known = list(self._calls) or [""]
        return str(self._one(self._random.choice(known), self._new(), self._random.choice(_NAMES)))

    def heartbeat(self) -> Message:
        count = self._random.choice((0, 1, 5, 50, 1000, 3000)) if self._random.random() < 0.2 else 1
        status = ModuleStatus(
            utime=self._random.choice(_TIMES),
            module=self._module(),
            instance=f"forged{self._random.randrange(1000)}",
            pid=self._random.choice(_NUMBERS),
            host=self._random.choice(_NAMES),
            started_utime=self._random.choice(_TIMES),
            health=self._random.choice(_TEXTS),
            skills_version=self._new(),
            call_ids=[self._call_id() for _ in range(count)],
            last_seqs=[self._random.choice(_NUMBERS) for _ in range(count)],
            state_json=self._random.choice(HOSTILE_JSON),
        )
        return STATUS, encode(status)

    def heartbeat_with_skills(self) -> Message:
        schema = self._one({}, exponential(16), {"$ref": "#"}, {"type": "nonsense"})
        size = self._random.choice((0, 1000, 50_000)) if self._random.random() < 0.95 else 1_000_000
        status = ModuleStatus(
            module=self._module(),
            instance=f"forged{self._random.randrange(1000)}",
            skills_version=self._new(),
            skills_json=str(self._one(skills(self._new(), size, schema), self._random.choice(HOSTILE_JSON))),
        )
        return STATUS, encode(status)

    def event(self) -> Message:
        if self._calls and self._random.random() < 0.7:
            of = self._random.choice(list(self._calls.values()))
            seq = self._random.choice((of.seq + 1, of.seq + 2, of.seq, 1, 2**30, of.seq + 500))
            event = ToolStreamEvent(call_id=of.call_id, module=of.module, skill=of.skill, caller=of.caller, seq=seq)
        else:
            event = ToolStreamEvent(call_id=self._new(), module=self._module(), seq=self._random.choice(_NUMBERS))
        event.utime, event.type = self._random.choice(_TIMES), self._random.choice(_TYPES)
        event.text = self._random.choice(_TEXTS) if self._random.random() < 0.99 else "x" * 1_000_000
        data = {"outcome": self._one("completed", "lost", 5), "_instance": self._one("", "forged", 5)}
        event.data_json = str(self._one(json.dumps(data), "{}", self._random.choice(HOSTILE_JSON)))
        return EVENTS, encode(event)

    def request(self) -> Message:
        request = ToolStreamRequest(
            receiver=str(self._one("bridge", "bridge@forged", self._new())),
            kind=str(self._one("ack", "repair", "gone", "describe", "pending", "x")),
            call_id=self._call_id(),
            from_seq=self._random.choice(_NUMBERS),
            to_seq=self._random.choice(_NUMBERS),
        )
        return REQUESTS, encode(request)

    def call(self) -> Message:
        call = SkillCall(
            call_id=str(self._one(self._new(), self._random.choice(_NAMES))),
            module=self._module(),
            skill=self._new(),
            caller=self._random.choice(_NAMES),
            parent=str(self._one("", self._new())),
            arguments_json=self._random.choice(HOSTILE_JSON),
            on_loss=str(self._one("", "stop", "x")),
        )
        return CALLS, encode(call)

    def cancel(self) -> Message:
        reason, outcome = self._random.choice(_TEXTS), self._random.choice(("", "lost", "x"))
        return CANCELS, encode(SkillCancel(call_id=self._new(), reason=reason, outcome=outcome))

    def hold(self) -> Message:
        hold = Hold(
            source=self._random.choice(("", "a" * 500, "\n")),
            hold=self._random.random() < 0.5,
            valid_s=self._random.choice(_FLOATS),
            seq=self._random.choice(_TIMES),
            reason=self._random.choice(_TEXTS),
        )
        return channel_name("/hold", Hold), encode(hold)

    def odometry(self) -> Message:
        if self._random.random() < 0.5:
            return channel_name("/battery", BatteryState), encode(BatteryState(percentage=float("nan")))
        odometry = Odometry()
        odometry.pose.pose.position.x = odometry.pose.pose.orientation.w = float("nan")
        return channel_name("/odom", Odometry), encode(odometry)


async def attack(bus_url: str, seconds: float, seed: int, rate: float) -> Counter[str]:
    """Send until the time is over; how many messages of each channel."""
    bus = create_bus(bus_url)
    await bus.open()
    neighbour, sent = Neighbour(seed), Counter[str]()
    neighbour.listen(bus)
    await asyncio.sleep(0.5)
    began = clock.monotonic()
    while (elapsed := clock.monotonic() - began) < seconds:
        for _ in range(_BATCH if sent.total() < elapsed * rate else 0):
            channel, data = neighbour.message()
            bus.publish(channel, data)
            sent[channel] += 1
        await asyncio.sleep(0 if sent.total() < elapsed * rate else 0.001)
    await bus.close()
    return sent


if __name__ == "__main__":
    url, duration, number, *more = sys.argv[1:]
    counts = asyncio.run(attack(url, float(duration), int(number), float(more[0]) if more else float("inf")))
    sys.stdout.write(json.dumps(counts) + "\n")
