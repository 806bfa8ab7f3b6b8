"""The playing of logs onto a bus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dimos_streams.cli.commands.of_logs.opened_logs import note_damage, note_unused, open_logs
from dimos_streams.cli.terminal.output import note, write
from dimos_streams.common.readable.plural import plural
from dimos_streams.errors import DimosStreamsError, UserError

if TYPE_CHECKING:
    from dimos_streams.bus import Bus
    from dimos_streams.recording.cut import LogPart
    from dimos_streams.recording.player import Player
    from dimos_streams.recording.reader import LogReader


def play(files: list[Path], part: LogPart, speed: float, bus: str | None, *, loop: bool, onto_run: bool) -> None:
    """Play a part of logs onto a bus, once or in a ``loop``. Raises ``UserError`` if a robot is driven over that bus,
    unless they are to be played ``onto_run``."""
    from dimos_streams.cli.bridge_client.connection import find_bus_url
    from dimos_streams.cli.system.async_runner import run_async
    from dimos_streams.recording.cut import check_found
    from dimos_streams.recording.player import Player

    url = find_bus_url(bus)
    with open_logs(files) as logs:
        player = Player(logs, part, speed=speed)
        run_async(_publish(player, logs, url, loop=loop, onto_run=onto_run))
        note_damage(logs)
        check_found(player.published + sum(player.unpublishable.values()), logs, part)
    if player.unpublishable:
        from dimos_streams.bus.sizes import MAX_CHANNEL_BYTES

        listed = ", ".join(f"{channel!r} ({count})" for channel, count in player.unpublishable.items())
        note(f"not published, because the bus takes no channel name of over {MAX_CHANNEL_BYTES} bytes: {listed}")
    if player.untyped:
        listed = ", ".join(f"{channel} ({count})" for channel, count in player.untyped.items())
        note(f"published as they are, of types that are not known here: {listed}")
    note_unused(part)
    write(f"published {plural(player.published, 'message')} of {plural(len(player.channels), 'channel')} on {url}")


async def _publish(player: Player, logs: list[LogReader], url: str, *, loop: bool, onto_run: bool) -> None:
    from dimos_streams.bus import create_bus
    from dimos_streams.bus.url import leaves_process

    bus = create_bus(url)
    await bus.open()
    try:
        if onto_run or not leaves_process(bus.url):
            await _play_all(player, logs, bus, loop=loop)
        else:
            await _refuse_robot(bus)
            await _play_without_robot(player, logs, bus, loop=loop)
    finally:
        await bus.close()


async def _play_all(
    player: Player,
    logs: list[LogReader],
    bus: Bus,
    *,
    loop: bool,
    on_message: Callable[[str, bytes], None] | None = None,
) -> None:
    from dimos_streams.cli.terminal.progress import progress

    while True:
        with progress("playing", sum(log.size for log in logs)) as advance:
            count = await player.play(bus, lambda _: advance(sum(log.position for log in logs)), on_message)
        if not loop or not count:
            return


async def _play_without_robot(player: Player, logs: list[LogReader], bus: Bus, *, loop: bool) -> None:
    """Play until the end, or until a robot is driven over the bus. Raises ``DimosStreamsError`` then."""
    from dimos_streams.recording.robot_watch import RobotWatch

    watch = RobotWatch(bus, lambda: playing.cancel())
    playing = asyncio.ensure_future(_play_all(player, logs, bus, loop=loop, on_message=watch.note))
    watch.start()
    try:
        await playing
    except asyncio.CancelledError:
        if not watch.gate:
            raise
        raise DimosStreamsError(
            f"playing ended after {plural(player.published, 'message')}: {_why_not(bus, watch.gate)}"
        ) from None
    finally:
        watch.stop()


async def _refuse_robot(bus: Bus) -> None:
    """Raise ``UserError`` if a robot is driven over a bus, which leaves the process."""
    from dimos_streams.operator.holding import GATE
    from dimos_streams.runtime.neighbours import modules_on

    if gates := sorted(module.name for module in await modules_on(bus) if GATE in module.state):
        raise UserError(_why_not(bus, gates[0]))


def _why_not(bus: Bus, gate: str) -> str:
    return (
        f"a robot runs on {bus.url} (velocity gate {gate!r}): it would take the log for true, and obey the"
        " commands in it; give another --bus, end that run, or say --onto-run"
    )
