"""The command line, ``dimos-streams``."""

from __future__ import annotations


def main() -> None:
    """Run the command that ``sys.argv`` names and exit with its code."""
    import signal

    # Ctrl-C never shows a traceback, as Python's own handler does: not before ours is there either.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    from dimos_streams.cli.system.closed_streams import open_closed_streams

    open_closed_streams()

    # Before anything heavy is imported.
    from dimos_streams.cli.system import signals

    signals.install()

    from dimos_streams.common.process.collector import collect_seldom

    collect_seldom()

    import io
    import sys

    from dimos_streams.cli.entry import run_command
    from dimos_streams.cli.system.leaving import leave

    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that can't show a character shows its number
        sys.stdout.reconfigure(errors="backslashreplace")
    leave(run_command(sys.argv[1:]))
