"""The commands for LCM logs: recording info, cut, export, report, view."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dimos_streams.cli.system.signals import unwinding
from dimos_streams.cli.terminal import log_options, options
from dimos_streams.cli.terminal.output import note, plural, write, write_json, write_table
from dimos_streams.common.readable.byte_size import byte_size
from dimos_streams.common.readable.dates import utc_text
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.recording.cut import LogPart
    from dimos_streams.recording.reader import LogReader
    from dimos_streams.recording.summary import LogSummary

_SHOWN = 5


def create_app() -> typer.Typer:
    """Return the commands under ``recording``."""
    about = "LCM logs: what is in them, parts of them, other formats."
    app = typer.Typer(help=about, no_args_is_help=True, callback=_keep_private)
    app.command("info")(info)
    app.command("cut")(cut)
    app.command("export")(export)
    app.command("report")(report)
    app.command("view")(view)
    return app


def _keep_private() -> None:
    """Keep what is made of a log for the log's own readers: it has its pictures and words."""
    from dimos_streams.runtime.registry import keep_private

    keep_private()


def info(files: log_options.Files, as_json: options.Json = False) -> None:
    """Show channels, types, rates, span, gaps and damage of a log."""
    from dimos_streams.cli.terminal.progress import progress
    from dimos_streams.recording.summary import summarize

    with opened(files) as logs:
        with progress("reading", sum(log.size for log in logs)) as advance:
            summary = summarize(logs, lambda log: advance(_done(logs)))
        if not summary.events and summary.metadata is None:
            raise UserError(f"there is no event in {', '.join(repr(str(log.path)) for log in logs)}")
        if as_json:
            write_json(_to_dict(summary, logs), indent=2)
        else:
            _write_summary(summary, logs)


def cut(
    files: log_options.Files,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The new log.", show_default=False, callback=log_options.named_file
        ),
    ],
    from_s: log_options.From = 0.0,
    to_s: log_options.To = None,
    channels: log_options.Channels = None,
    without: log_options.Without = None,
    remap: log_options.Remap = None,
) -> None:
    """Copy a part of a log, or several parts into one log."""
    from dimos_streams.cli.terminal.progress import progress
    from dimos_streams.recording.cut import cut as copy

    part = part_of(from_s, to_s, channels, without, remap)
    with opened(files) as logs:
        with unwinding(), progress("copying", sum(log.size for log in logs)) as advance:
            copied = copy(logs, output, part, lambda log: advance(_done(logs)))
        note_damage(logs)
    note_unused(part)
    for call in copied.begun_before[:_SHOWN]:
        note(f"call {call} began before {from_s:g} s; a replay can't repeat it")
    if (more := len(copied.begun_before) - _SHOWN) > 0:
        note(f"and so did {plural(more, 'other call')}")
    write(f"{output}: {plural(copied.events, 'event')}, {byte_size(output.stat().st_size)}")


def export(
    file: log_options.File,
    mcap: Annotated[
        Path | None,
        typer.Option(
            "--mcap",
            metavar="OUT",
            help="Into an MCAP file, as for Foxglove.",
            show_default=False,
            callback=log_options.named_file,
        ),
    ] = None,
    csv: Annotated[
        str | None,
        typer.Option("--csv", metavar="CHANNEL", help="One topic as CSV, a column a field.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Where the CSV goes; standard output without it.",
            callback=log_options.named_file,
        ),
    ] = None,
    from_s: log_options.From = 0.0,
    to_s: log_options.To = None,
    channels: log_options.Channels = None,
    without: log_options.Without = None,
) -> None:
    """Write a log, or a part of it, in another format: `--mcap OUT` or `--csv CHANNEL`."""
    from dimos_streams.cli.terminal.progress import progress

    if (mcap is None) == (csv is None):
        raise UserError("export to what? give either --mcap OUT or --csv CHANNEL")
    part = part_of(from_s, to_s, channels, without, None)
    with opened([file]) as logs, unwinding(), progress("exporting", logs[0].size) as advance:
        if mcap is not None:
            _export_mcap(logs, mcap, part, advance)
        else:
            assert csv is not None
            _export_csv(logs, csv, output, part, advance)
        note_damage(logs)
    note_unused(part)


def report(
    files: log_options.Files,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The HTML file.",
            show_default=False,
            callback=log_options.named_file,
        ),
    ],
    max_mb: Annotated[
        float, typer.Option("--max-mb", metavar="MB", min=0.2, max=10_000, help="The size that it has at most.")
    ] = 4.0,
) -> None:
    """Tell what happened in one HTML file: map, calls, pictures, conversation, figures. It needs nothing else."""
    from dimos_streams.cli.terminal.progress import progress
    from dimos_streams.recording.report.write import write_report

    with opened(files) as logs:
        with unwinding(), progress("reading", sum(log.size for log in logs)) as advance:
            size = write_report(
                logs, output, max_bytes=round(max_mb * 1e6), on_progress=lambda log: advance(_done(logs))
            )
        note_damage(logs)
    write(f"{output}: {byte_size(size)}")


def view(
    files: log_options.Files,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Where the page is served; 0 takes any free port.")
    ] = 0,
) -> None:
    """Look at a log with the operators' page: play, pause, slower, faster, to any moment, event by event.

    The page is served to this machine until Ctrl-C; nothing can be ordered from it.
    """
    from dimos_streams.cli.system.async_runner import run_async

    with opened(files) as logs:
        run_async(_serve(logs, port))


async def _serve(logs: list[LogReader], port: int) -> None:
    from dimos_streams.cli.terminal.progress import progress
    from dimos_streams.viewer.recording import viewed

    with progress("reading", sum(log.size for log in logs)) as advance:
        viewing = viewed(logs, port=port, on_progress=advance)
        shown = await viewing.__aenter__()
    try:
        for text in shown.notes:
            note(text)
        write(f"{shown.url} shows {', '.join(str(log.path) for log in logs)}; Ctrl-C ends it")
        await asyncio.Event().wait()
    finally:
        await viewing.__aexit__(None, None, None)


@contextmanager
def opened(files: Sequence[Path]) -> Iterator[list[LogReader]]:
    """Logs, open inside the block. Raises ``UserError``, also for a file that has something in it but no event."""
    from dimos_streams.recording.reader import LogReader

    with ExitStack() as stack:
        logs = [stack.enter_context(LogReader(file)) for file in files]
        for log in logs:
            if log.size and next(log.events(), None) is None:
                raise UserError(f"{str(log.path)!r} is no LCM log: no event begins anywhere in its {log.size} bytes")
        yield logs


def part_of(
    from_s: float, to_s: float | None, channels: list[str] | None, without: list[str] | None, remap: list[str] | None
) -> LogPart:
    """Return the part of the logs that the options name. Raises ``UserError``."""
    from dimos_streams.recording.cut import LogPart
    from dimos_streams.recording.selection import Selection

    if to_s is not None and to_s < from_s:
        raise UserError(f"--to {to_s:g} is before --from {from_s:g}")
    names = {}
    for text in remap or ():
        old, equals, new = text.partition("=")
        if not equals or not old or not new:
            raise UserError(f"--remap {text!r}: expected TOPIC=TOPIC, as in /odom=/robot1/odom")
        names[old] = new
    return LogPart(selection=Selection(channels or (), without or ()), from_s=from_s, to_s=to_s, remap=names)


def note_damage(logs: Sequence[LogReader]) -> None:
    """One line for each log that is damaged."""
    for log in logs:
        if log.damaged_bytes:
            places = "; ".join(map(str, log.damages[:_SHOWN]))
            more = f"; {len(log.damages)} places in all" if len(log.damages) > _SHOWN else ""
            note(f"{log.path} is damaged, {plural(log.damaged_bytes, 'byte')} were left out: {places}{more}")


def note_unused(part: LogPart) -> None:
    """One line for each name that was given for nothing."""
    for what in part.unused():
        note(what)


def _done(logs: Sequence[LogReader]) -> int:
    return sum(log.position for log in logs)


def _export_mcap(logs: list[LogReader], target: Path, part: LogPart, advance: Any) -> None:
    from dimos_streams.foxglove.address import LAYOUT
    from dimos_streams.messages import registry
    from dimos_streams.messages.codec import split_channel
    from dimos_streams.recording.export.mcap import export_mcap

    done = export_mcap(logs[0], target, part, lambda log: advance(log.position))
    write(f"{target}: {plural(done.messages, 'message')} of {plural(done.channels, 'channel')}")
    note(f"a layout for Foxglove is {LAYOUT}")
    by_hint: dict[str, dict[str, int]] = {}
    for channel, count in done.unknown.items():
        by_hint.setdefault(registry.hint(split_channel(channel)[1]), {})[channel] = count
    for hint, counts in by_hint.items():
        _note_left_out("their types are not known here", counts, hint)
    _note_left_out("they are damaged", done.damaged)
    _note_left_out("MCAP has no such time", done.untimed)


def _note_left_out(why: str, counts: Mapping[str, int], remedy: str = "") -> None:
    if counts:
        listed = ", ".join(f"{channel} ({count})" for channel, count in counts.items())
        note(f"left out, because {why}: {listed}{remedy}")


def _export_csv(logs: list[LogReader], channel: str, target: Path | None, part: LogPart, advance: Any) -> None:
    from dimos_streams.recording.cut import refuse_itself
    from dimos_streams.recording.export.csv_tables import Rows, csv_lines
    from dimos_streams.recording.files.whole import whole_file

    if target is not None:
        refuse_itself(target, logs)
    rows = Rows()
    lines = csv_lines(logs[0], channel, part, rows, lambda log: advance(log.position))
    if target is None:
        for line in lines:
            write(line)
    else:
        first = list(islice(lines, 1))  # what is wrong with the log is said before what is with the file
        with whole_file(target) as path, open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in chain(first, lines))
        write(f"{target}: {plural(rows.written, 'message')} of {channel}")
    if rows.damaged:
        note(f"left out, because they are damaged: {plural(rows.damaged, 'message')}")


def _to_dict(summary: LogSummary, logs: Sequence[LogReader]) -> dict[str, Any]:
    metadata, beyond = summary.metadata, summary.beyond
    return {
        "files": [str(log.path) for log in logs],
        "bytes": sum(log.size for log in logs),
        "events": summary.events,
        "first_utime": summary.first,
        "span_s": summary.span_s,
        "channels": [summary.channels[name].to_dict(summary.first) for name in sorted(summary.channels)],
        "beyond": None if beyond is None else {"messages": beyond.count, "bytes": beyond.size},
        "clock_set_back": [{"event": one.event, "seconds": one.us / 1e6} for one in summary.set_backs],
        "silences": [{"at_s": (at - summary.first) / 1e6, "seconds": us / 1e6} for at, us in summary.gaps],
        "damaged_bytes": sum(log.damaged_bytes for log in logs),
        "damage": [
            {"file": str(log.path), "offset": one.offset, "length": one.length, "why": one.why}
            for log in logs
            for one in log.damages
        ],
        "metadata": None if metadata is None else metadata.model_dump(mode="json", exclude={"messages"}),
    }


def _write_summary(summary: LogSummary, logs: Sequence[LogReader]) -> None:
    size = sum(log.size for log in logs)
    write(f"{' '.join(str(log.path) for log in logs)}: {plural(summary.events, 'event')}, {byte_size(size)}")
    if summary.events:
        write(f"{summary.span_s:.3f} s from {utc_text(summary.first)}")
    metadata = summary.metadata
    if metadata is not None:
        name = (metadata.blueprint or {}).get("name", "?")
        write(f"blueprint {name}, {metadata.mode or '?'} run, seed {metadata.seed}, version {metadata.version}")
    rows = []
    for channel in (summary.channels[name] for name in sorted(summary.channels)):
        rate = "" if channel.rate_hz is None else f"{channel.rate_hz:.1f} Hz"
        gap = channel.gap_s
        after_s = (channel.longest_at - summary.first) / 1e6
        text = "" if gap is None else f"{gap:.2f} s after {after_s:.1f} s"
        rows.append(
            (channel.topic, str(channel.count), rate, byte_size(channel.size), channel.type_name or "?", text)
        )
    if rows:
        write_table(("TOPIC", "EVENTS", "RATE", "SIZE", "TYPE", "LONGEST GAP"), rows)
    if beyond := summary.beyond:
        write(
            f"{plural(beyond.count, 'further event')} are of other channels than the first {len(summary.channels)}:"
            f" they are only counted, {byte_size(beyond.size)} in all"
        )
    for at, length in summary.gaps[:_SHOWN]:
        write(f"nothing at all was recorded for {length / 1e6:.1f} s after {(at - summary.first) / 1e6:.1f} s")
    for set_back in summary.set_backs[:_SHOWN]:
        write(f"{set_back}; times are counted on from there")
    if summary.older.count:
        write(f"{summary.older}; these keep their times")
    note_damage(logs)
