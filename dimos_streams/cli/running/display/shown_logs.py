"""The logs of the command's own process: on standard error, below the run's lines, or in a file."""

from __future__ import annotations

import contextlib
import logging

from dimos_streams.cli.option_groups.run_request import Mode
from dimos_streams.cli.terminal.output import note_lines
from dimos_streams.common.printable import LogFormatter
from dimos_streams.common.process.internal_error import logs_are_shown_by
from dimos_streams.runtime.options import RunOptions
from dimos_streams.runtime.processes.output import open_log
from dimos_streams.tool_stream.hosting.unawaited import warn_each_time


def set_up_logging(mode: Mode, options: RunOptions, *, warn: bool, in_background: bool) -> None:
    """Show warnings of this process; in the background send all that it logs to standard error. With all modules in
    one process, what they log goes to a file, and warnings are shown as well if ``warn`` says so."""
    timed = LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    shown = _Shown(logging.INFO if in_background else logging.WARNING)
    shown.setFormatter(timed if in_background else LogFormatter("%(levelname)s: %(message)s"))
    handlers: list[logging.Handler] = [shown]
    if mode == "in-process" and options.run_dir is not None:
        # The descriptors 1 and 2 stay the terminal's.
        file = logging.StreamHandler(open_log(options.run_dir / "logs" / "main.log"))
        file.setFormatter(timed)
        handlers = [shown, file] if warn and not in_background else [file]
    warn_each_time()
    logs_are_shown_by(options.log_selector if mode == "in-process" else None)
    logging.basicConfig(level=logging.INFO, handlers=handlers)


class _Shown(logging.Handler):
    """A handler that shows records on whatever standard error is at the moment: below the run's lines, or its log."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # a terminal that has gone, or a full disk, ends no run
            note_lines(self.format(record))
