"""The commands for the bus: topics list, echo, rate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note, while_read, write, write_json, write_table
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.bus import Bus, Handler
    from dimos_streams.cli.system.bus_traffic import Traffic, TrafficMeter

_HINT_AFTER_S = 3.0


def _named_topic(topic: str) -> str:
    """Return a topic. Raises ``UserError`` for one that names none: it would be waited for in vain."""
    if not topic.strip():
        raise UserError(f"TOPIC {topic!r} names none; `dimos-streams topics list` lists those that there are")
    return topic


Topic = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC",
        help="The topic, as in /odom, or with its type: /odom#nav_msgs.Odometry.",
        callback=_named_topic,
    ),
]
Seconds = Annotated[float, typer.Option("--seconds", min=0.1, help="How long to listen, in seconds.")]


def create_app() -> typer.Typer:
    """Return the commands under ``topics``."""
    app = typer.Typer(
        help="Topics on the bus: which there are, their messages, and their rates.", no_args_is_help=True
    )
    app.command("list")(list_topics)
    app.command("echo")(echo)
    app.command("rate")(rate)
    return app


def list_topics(seconds: Seconds = 2.0, bus: options.BusUrl = None, as_json: options.Json = False) -> None:
    """List the topics that carry messages now, with rate, bandwidth and size."""
    from dimos_streams.cli.bridge_client.connection import find_bus_url
    from dimos_streams.cli.system.async_runner import run_async

    url = find_bus_url(bus)
    found = run_async(_listen(url, seconds))
    if as_json:
        write_json([traffic.to_dict(seconds) for traffic in found], indent=2)
    elif found:
        write_table(("TOPIC", "RATE", "BANDWIDTH", "SIZE", "TYPE"), [traffic.row(seconds) for traffic in found])
    else:
        note(f"no messages within {seconds:g} s on {url}")


def echo(
    topic: Topic,
    count: Annotated[int | None, typer.Option("--count", min=1, help="End after this number of messages.")] = None,
    bus: options.BusUrl = None,
    as_json: options.JsonLines = False,
) -> None:
    """Print the messages of a topic as they come. In JSON they are complete, with bytes in base64."""
    from dimos_streams.cli.bridge_client.connection import find_bus_url
    from dimos_streams.cli.system.async_runner import run_async

    run_async(while_read(_echo(find_bus_url(bus), topic, count, _print_json if as_json else _print_text)))


def rate(
    topic: Topic,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.1, help="End after this time, in seconds.")
    ] = None,
    bus: options.BusUrl = None,
    as_json: options.JsonLines = False,
) -> None:
    """Print once a second how often messages of a topic come."""
    from dimos_streams.cli.bridge_client.connection import find_bus_url
    from dimos_streams.cli.system.async_runner import run_async

    run_async(while_read(_rate(find_bus_url(bus), topic, seconds, as_json=as_json)))


@asynccontextmanager
async def _messages(url: str, handler: Handler) -> AsyncIterator[Bus]:
    """Hand all messages of the bus to ``handler`` within the context."""
    from dimos_streams.bus import create_bus

    bus = create_bus(url)
    await bus.open()
    try:
        bus.subscribe_all(handler)
        yield bus
    finally:
        await bus.close()


async def _listen(url: str, seconds: float) -> list[Traffic]:
    from dimos_streams.cli.system.bus_traffic import TrafficMeter

    meter = TrafficMeter()
    async with _messages(url, meter.on_message):
        await asyncio.sleep(seconds)
    return meter.channels()


async def _echo(url: str, topic: str, count: int | None, show: Callable[[str, bytes], None]) -> None:
    from dimos_streams.cli.system.bus_traffic import TrafficMeter, matches

    waiting: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(1024)
    meter = TrafficMeter()

    def on_message(channel: str, data: bytes) -> None:
        meter.on_message(channel, data)
        if matches(channel, topic) and not waiting.full():
            waiting.put_nowait((channel, data))

    shown = 0
    async with _messages(url, on_message):
        hint = asyncio.create_task(_hint(topic, url, meter))
        while count is None or shown < count:
            show(*await waiting.get())
            hint.cancel()
            shown += 1


async def _rate(url: str, topic: str, seconds: float | None, *, as_json: bool) -> None:
    from dimos_streams.cli.system.bus_traffic import TrafficMeter, matches

    meter, everything = TrafficMeter(), TrafficMeter()

    def on_message(channel: str, data: bytes) -> None:
        everything.on_message(channel, data)
        if matches(channel, topic):
            meter.on_message(channel, data)

    left = seconds
    async with _messages(url, on_message):
        hint = asyncio.create_task(_hint(topic, url, everything))
        while left is None or left > 0:
            period = 1.0 if left is None else min(1.0, left)
            await asyncio.sleep(period)
            left = None if left is None else left - period
            for traffic in meter.channels():
                hint.cancel()
                _print_rate(traffic, period, as_json=as_json)
            meter.clear()


def _print_rate(traffic: Traffic, period: float, *, as_json: bool) -> None:
    if as_json:
        write_json(traffic.to_dict(period))
        return
    _, rate, bandwidth, size, _ = traffic.row(period)
    write(f"{traffic.topic}  {rate}  {bandwidth}  {size}  {traffic.interval_text()}".rstrip())


async def _hint(topic: str, url: str, meter: TrafficMeter) -> None:
    """After a while without a message, say what there is instead."""
    from dimos_streams.errors import suggest

    await asyncio.sleep(_HINT_AFTER_S)
    names = sorted({traffic.topic for traffic in meter.channels()})
    now = f"topics now: {', '.join(names)}" if names else "there are no messages at all"
    note(f"no message on {topic!r} yet{suggest(topic.partition('#')[0], names)} ({now}; bus {url})")


def _print_text(channel: str, data: bytes) -> None:
    from dimos_streams.cli.system.message_text import to_lines
    from dimos_streams.errors import MessageError
    from dimos_streams.messages.codec import decode, split_channel, type_named

    try:
        message = decode(type_named(split_channel(channel)[1], channel), data, channel)
    except MessageError as error:
        write(f"{channel}: {len(data)} bytes, {error.why}")
    else:
        for line in (channel, *to_lines(message, "  ")):
            write(line)


def _print_json(channel: str, data: bytes) -> None:
    from dimos_streams.errors import MessageError
    from dimos_streams.messages.base import to_json_value
    from dimos_streams.messages.codec import decode, split_channel, type_named

    topic, kind = split_channel(channel)
    head = {"topic": topic, "type": kind, "size": len(data)}
    try:
        message = decode(type_named(kind, channel), data, channel)
    except MessageError as error:
        write_json(head | {"error": error.why})
    else:
        write_json(head | {"message": to_json_value(message)})
