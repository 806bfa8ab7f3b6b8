"""The exports of a log: into an MCAP file, or one topic as CSV."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from dimos_streams.cli.terminal.output import note, write_about, write_row
from dimos_streams.common.readable.plural import plural

if TYPE_CHECKING:
    from dimos_streams.cli.terminal.progress import Advance
    from dimos_streams.recording.cut import LogPart
    from dimos_streams.recording.reader import LogReader

_UNREADABLE = "they are of another definition of their type, or damaged"


def write_mcap(log: LogReader, target: Path, part: LogPart, advance: Advance) -> None:
    """Write a part of a log into an MCAP file, and say what of it does not go there."""
    from dimos_streams.foxglove.address import LAYOUT
    from dimos_streams.messages import registry
    from dimos_streams.messages.codec import split_channel
    from dimos_streams.recording.export.mcap import export_mcap

    done = export_mcap(log, target, part, lambda log: advance(log.position))
    write_about(target, f"{plural(done.messages, 'message')} of {plural(done.channels, 'channel')}")
    note(f"a layout for Foxglove is {LAYOUT}")
    by_hint: dict[str, dict[str, int]] = {}
    for channel, count in done.unknown.items():
        by_hint.setdefault(registry.hint(split_channel(channel)[1]), {})[channel] = count
    for hint, counts in by_hint.items():
        _note_left_out("their types are not known here", counts, hint)
    _note_left_out(_UNREADABLE, done.damaged)
    _note_left_out("MCAP has no such time", done.untimed)


def _note_left_out(why: str, counts: Mapping[str, int], remedy: str = "") -> None:
    if counts:
        listed = ", ".join(f"{channel} ({count})" for channel, count in counts.items())
        note(f"left out, because {why}: {listed}{remedy}")


def write_csv(log: LogReader, channel: str, target: Path | None, part: LogPart, advance: Advance) -> None:
    """Write the messages of one topic as CSV, into a file or to standard output."""
    from dimos_streams.recording.cut import refuse_itself
    from dimos_streams.recording.export.csv_tables import Rows, csv_lines
    from dimos_streams.recording.files.whole import whole_file

    if target is not None:
        refuse_itself(target, [log])
    rows = Rows()
    lines = csv_lines(log, channel, part, rows, lambda log: advance(log.position))
    if target is None:
        for line in lines:
            write_row(line)
    else:
        first = list(islice(lines, 1))  # what is wrong with the log is said before what is with the file
        with whole_file(target) as path, open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in chain(first, lines))
        write_about(target, f"{plural(rows.written, 'message')} of {channel}")
    if rows.damaged:
        note(f"left out, because {_UNREADABLE}: {plural(rows.damaged, 'message')}")
