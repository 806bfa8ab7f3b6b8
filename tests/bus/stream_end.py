"""One end of a tool stream, in a process of its own: ``python -m tests.bus.stream_end send|receive URL``.

The sender writes numbers until a line comes on its standard input, and lives until the next. The receiver says
``flows`` when the first has come, and all numbers in a line of JSON when the stream has been closed.
"""

from __future__ import annotations

import asyncio
import json
import sys

from dimos_streams.bus import Bus, create_bus
from dimos_streams.messages.codec import decode, encode
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.event import Outcome, ToolEvent
from dimos_streams.tool_stream.protocol.channels import EVENTS, STATUS
from dimos_streams.tool_stream.receiving.receiver import ToolStreamReceiver
from dimos_streams.tool_stream.sending.publisher import ToolStreamPublisher
from tests.helpers import anybody, until

PERIOD_S = 0.01
BEAT_S = 0.25


async def send(bus: Bus) -> None:
    publisher = ToolStreamPublisher(bus)
    publisher.start()
    enough = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    await until(lambda: bus.has_subscribers(EVENTS))
    writer = publisher.begin("1", module="m", skill="s", caller="c", text="", data={})
    beating = asyncio.create_task(beat(bus, publisher))
    number = 0
    while not enough.done():
        await writer.update("", {"number": number})
        number += 1
        await asyncio.sleep(PERIOD_S)
    writer.close(Outcome.COMPLETED, "", {"count": number})
    await asyncio.to_thread(sys.stdin.readline)
    beating.cancel()
    publisher.stop()


async def beat(bus: Bus, publisher: ToolStreamPublisher) -> None:
    """Say how far the stream is, as the host of a skill does."""
    while True:
        live = publisher.heartbeat_calls("m")
        status = ModuleStatus(module="m", call_ids=[call for call, _ in live], last_seqs=[seq for _, seq in live])
        bus.publish(STATUS, encode(status))
        await asyncio.sleep(BEAT_S)


async def receive(bus: Bus) -> None:
    numbers: list[int] = []
    count = asyncio.get_running_loop().create_future()

    def take(events: list[ToolEvent]) -> None:
        for event in events:
            if event.type == "update":
                numbers.append(event.data["number"])
                if len(numbers) == 1:
                    say("flows")
            if event.type == "close":
                count.set_result(event.data["count"])

    receiver = ToolStreamReceiver(bus, take, may_open=anybody)
    receiver.start()
    bus.subscribe(STATUS, lambda _, data: receiver.on_status(decode(ModuleStatus, data)))
    say(json.dumps({"sent": await count, "received": numbers}))
    receiver.stop()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(role: str, url: str) -> None:
    bus = create_bus(url)
    await bus.open()
    await {"send": send, "receive": receive}[role](bus)
    await bus.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
