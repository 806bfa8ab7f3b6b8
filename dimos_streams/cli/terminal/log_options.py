"""Arguments and options of the commands for LCM logs: those under `recording`, and `replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dimos_streams.cli.terminal.options import checked_seed
from dimos_streams.errors import UserError

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="An LCM log, or its parts in order.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="An LCM log.")]
Channels = Annotated[
    list[str] | None,
    typer.Option(
        "--channels",
        metavar="PATTERN",
        help="Only such topics ('/robot1/*') or channels ('*#sensor_msgs.Image'); several times.",
    ),
]
Without = Annotated[
    list[str] | None, typer.Option("--without", metavar="PATTERN", help="Leave such ones out; several times.")
]
From = Annotated[float, typer.Option("--from", metavar="SECONDS", min=0, help="Begin so long after the first event.")]
To = Annotated[float | None, typer.Option("--to", metavar="SECONDS", min=0, help="End so long after it.")]
Remap = Annotated[
    list[str] | None, typer.Option("--remap", metavar="TOPIC=TOPIC", help="Rename a topic; several times.")
]
Speed = Annotated[float, typer.Option("--speed", metavar="FACTOR", help="2 is twice as fast.")]
Loop = Annotated[bool, typer.Option("--loop", help="Begin again at the end, until Ctrl-C.")]
OntoRun = Annotated[
    bool,
    typer.Option(
        "--onto-run",
        help="Play although a robot runs on that bus. It takes all of it for true and obeys its commands, velocities "
        "behind its gate among them.",
    ),
]
Modules = Annotated[
    str | None,
    typer.Option(
        "--modules",
        metavar="NAMES",
        help="Test these modules, as in 'follow,lookout': they get their recorded inputs, in virtual time, and "
        "what they send and say is compared with the log.",
    ),
]
Blueprint = Annotated[
    str | None,
    typer.Option(
        "--blueprint",
        metavar="BLUEPRINT",
        help="Where the modules are from. Without it: what the log says of itself.",
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", callback=checked_seed, help="Without it: the recording's own.")]
Exact = Annotated[bool, typer.Option("--exact", help="Everything must be equal.")]
Tolerance = Annotated[
    list[str] | None,
    typer.Option(
        "--tolerance",
        metavar="[FIELD=]NUMBER",
        help="By how much numbers may differ, all or those of a field: 'linear.x=0.01', '/odom:pose=0.1'; "
        "several times.",
    ),
]
TimeTolerance = Annotated[
    float | None, typer.Option("--time-tolerance", metavar="SECONDS", min=0, help="By how much times may differ.")
]
Tolerances = Annotated[Path | None, typer.Option("--tolerances", metavar="FILE", help="Tolerances from a YAML file.")]
Update = Annotated[
    bool, typer.Option("--update", help="Write what the modules give now into the log, in place of what it has.")
]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="PICTURE", help="Draw recorded against replayed (PNG, SVG, PDF).")
]


def named_file(path: Path | None) -> Path | None:
    """Return a file that is to be written. Raises ``UserError`` for a name by which programs mean standard output:
    nobody wants a file that is called so."""
    if path == Path("-"):
        raise UserError("'-' is no name of a file: give one")
    return path
