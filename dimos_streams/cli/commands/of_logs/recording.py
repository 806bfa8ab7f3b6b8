"""The commands under `recording`: info, cut, export, report, view."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.commands.of_logs.opened_logs import (
    SHOWN,
    bytes_read,
    note_damage,
    note_unused,
    open_logs,
)
from dimos_streams.cli.option_groups.ungrouped import ungrouped
from dimos_streams.cli.system.signals import unwinding
from dimos_streams.cli.terminal import log_options, options
from dimos_streams.cli.terminal.output import note, write, write_about, write_json
from dimos_streams.common.readable.byte_size import byte_size
from dimos_streams.common.readable.plural import plural
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.recording.reader import LogReader


def create_app() -> typer.Typer:
    """Return the commands under ``recording``."""
    about = "LCM logs: what is in them, parts of them, other formats."
    app = typer.Typer(help=about, no_args_is_help=True, callback=_keep_private)
    app.command("info")(info)
    app.command("cut")(ungrouped(cut))
    app.command("export")(ungrouped(export))
    app.command("report")(report)
    app.command("view")(view)
    return app


def _keep_private() -> None:
    """Keep what is made of a log for the log's own readers: it has its pictures and words."""
    from dimos_streams.runtime.run_directories import keep_private

    keep_private()


def info(files: log_options.Files, as_json: options.Json = False) -> None:
    """Show channels, types, rates, span, gaps and damage of a log."""
    from dimos_streams.cli.commands.of_logs.summary_text import summary_dict, write_summary
    from dimos_streams.cli.terminal.progress import progress
    from dimos_streams.recording.summary import summarize

    with open_logs(files) as logs:
        with progress("reading", sum(log.size for log in logs)) as advance:
            summary = summarize(logs, lambda log: advance(bytes_read(logs)))
        if not summary.events and summary.metadata is None:
            raise UserError(f"there is no event in {', '.join(repr(str(log.path)) for log in logs)}")
        if as_json:
            write_json(summary_dict(summary, logs), indent=2)
        else:
            write_summary(summary, logs)


def cut(
    files: log_options.Files,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The new log.", callback=log_options.named_file)
    ],
    *,
    chosen: log_options.RemappedPart,
) -> None:
    """Copy a part of a log, or several parts into one log."""
    from dimos_streams.cli.terminal.progress import progress
    from dimos_streams.recording.cut import cut as copy

    part = chosen.part()
    with open_logs(files) as logs:
        with unwinding(), progress("copying", sum(log.size for log in logs)) as advance:
            copied = copy(logs, output, part, lambda log: advance(bytes_read(logs)))
        note_damage(logs)
    note_unused(part)
    for call in copied.begun_before[:SHOWN]:
        note(f"call {call} began before {chosen.from_s:g} s; a replay can't repeat it")
    if (more := len(copied.begun_before) - SHOWN) > 0:
        note(f"and so did {plural(more, 'other call')}")
    write_about(output, f"{plural(copied.events, 'event')}, {byte_size(output.stat().st_size)}")


def export(
    file: log_options.File,
    mcap: Annotated[
        Path | None,
        typer.Option(
            "--mcap",
            metavar="OUT",
            help="Write an MCAP file, which Foxglove and other tools read.",
            callback=log_options.named_file,
        ),
    ] = None,
    csv: Annotated[
        str | None,
        typer.Option("--csv", metavar="CHANNEL", help="Write this topic as CSV, with a column for each field."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The CSV file. Without it: standard output.",
            callback=log_options.named_file,
        ),
    ] = None,
    *,
    chosen: log_options.PartChoice,
) -> None:
    """Write a log, or a part of it, in another format: `--mcap OUT` or `--csv CHANNEL`."""
    from dimos_streams.cli.commands.of_logs.exports import write_csv, write_mcap
    from dimos_streams.cli.terminal.progress import progress

    if (mcap is None) == (csv is None):
        raise UserError("export to what? give either --mcap OUT or --csv CHANNEL")
    part = chosen.part()
    with open_logs([file]) as logs, unwinding(), progress("exporting", logs[0].size) as advance:
        if mcap is not None:
            write_mcap(logs[0], mcap, part, advance)
        else:
            assert csv is not None
            write_csv(logs[0], csv, output, part, advance)
        note_damage(logs)
    note_unused(part)


def report(
    files: log_options.Files,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file.", callback=log_options.named_file)
    ],
    max_mb: Annotated[
        float, typer.Option("--max-mb", metavar="MB", min=0.2, max=10_000, help="The largest size of the file.")
    ] = 4.0,
) -> None:
    """Tell what happened in one HTML file: map, calls, pictures, conversation, figures. It needs nothing else."""
    from dimos_streams.cli.terminal.progress import progress
    from dimos_streams.recording.report.write import write_report

    with open_logs(files) as logs:
        with unwinding(), progress("reading", sum(log.size for log in logs)) as advance:
            size = write_report(
                logs, output, max_bytes=round(max_mb * 1e6), on_progress=lambda log: advance(bytes_read(logs))
            )
        note_damage(logs)
    write_about(output, byte_size(size))


def view(
    files: log_options.Files,
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, help="The port on which the page is served; 0 stands for any free one."
        ),
    ] = 0,
) -> None:
    """Look at a log with the operators' page: play, pause, slower, faster, to any moment, event by event.

    The page is served to this machine until Ctrl-C; nothing can be ordered from it.
    """
    from dimos_streams.cli.system.async_runner import run_async

    with open_logs(files) as logs:
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
