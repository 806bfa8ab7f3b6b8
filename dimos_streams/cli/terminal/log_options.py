"""Arguments and options of the commands for LCM logs: those under `recording`, and `replay`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.terminal.options import Json, Settings, checked_seed
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.recording.cut import LogPart

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="An LCM log, or its parts in order.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="An LCM log.")]
Speed = Annotated[
    float,
    typer.Option(
        "--speed", metavar="FACTOR", help="The pace, as a multiple of the recorded one: 2 is twice as fast."
    ),
]
Loop = Annotated[bool, typer.Option("--loop", help="When the log ends, play it again, until Ctrl-C.")]
OntoRun = Annotated[
    bool,
    typer.Option(
        "--onto-run",
        help="Play also onto a bus on which a run has a robot. The robot takes recorded messages for real ones and "
        "obeys recorded commands, even velocities that bypass its velocity gate.",
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


def named_file(path: Path | None) -> Path | None:
    """Return a file that is to be written. Raises ``UserError`` for a name by which programs mean standard output:
    nobody wants a file that is called so."""
    if path == Path("-"):
        raise UserError("'-' is no name of a file: give one")
    return path


@dataclass(frozen=True, kw_only=True)
class PartChoice:
    """The choice of a part of a log; without any option it is all of it."""

    from_s: Annotated[
        float,
        typer.Option("--from", metavar="SECONDS", min=0, help="Begin this long after the first message of the log."),
    ] = 0.0
    to_s: Annotated[
        float | None,
        typer.Option("--to", metavar="SECONDS", min=0, help="End this long after the first message of the log."),
    ] = None
    channels: Annotated[
        list[str] | None,
        typer.Option(
            "--channels",
            metavar="PATTERN",
            help="Take only topics ('/robot1/*') or channels ('*#sensor_msgs.Image') that match. May be given "
            "several times.",
        ),
    ] = None
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="PATTERN",
            help="Leave out topics or channels that match. May be given several times.",
        ),
    ] = None

    def part(self) -> LogPart:
        """Return the part. Raises ``UserError``."""
        from dimos_streams.recording.cut import LogPart
        from dimos_streams.recording.selection import Selection

        if self.to_s is not None and self.to_s < self.from_s:
            raise UserError(f"--to {self.to_s:g} is before --from {self.from_s:g}")
        selection = Selection(self.channels or (), self.without or ())
        return LogPart(selection=selection, from_s=self.from_s, to_s=self.to_s, remap=self._names())

    def _names(self) -> dict[str, str]:
        """Return the new names of topics that get one."""
        return {}


@dataclass(frozen=True, kw_only=True)
class RemappedPart(PartChoice):
    """The choice of a part of a log whose topics may be renamed."""

    remap: Annotated[
        list[str] | None,
        typer.Option("--remap", metavar="TOPIC=TOPIC", help="Rename a topic, OLD=NEW. May be given several times."),
    ] = None

    def _names(self) -> dict[str, str]:
        names = {}
        for text in self.remap or ():
            old, equals, new = text.partition("=")
            if not equals or not old or not new:
                raise UserError(f"--remap {text!r}: expected TOPIC=TOPIC, as in /odom=/robot1/odom")
            names[old] = new
        return names


@dataclass(frozen=True, kw_only=True)
class ModuleTest:
    """The options of a test of modules with a log."""

    blueprint: Annotated[
        str | None,
        typer.Option(
            "--blueprint",
            metavar="BLUEPRINT",
            help="The blueprint that has the modules. Without it: the one that the log names.",
        ),
    ] = None
    settings: Settings = None
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            callback=checked_seed,
            help="The seed of the modules' randomness. Without it: that of the recorded run.",
        ),
    ] = None
    exact: Annotated[bool, typer.Option("--exact", help="Allow no differences, however small.")] = False
    tolerance: Annotated[
        list[str] | None,
        typer.Option(
            "--tolerance",
            metavar="[FIELD=]NUMBER",
            help="The largest allowed difference of numbers: of all ('0.01'), of a field ('linear.x=0.01'), or of a "
            "topic's field ('/odom:pose=0.1'). May be given several times.",
        ),
    ] = None
    time_tolerance: Annotated[
        float | None,
        typer.Option("--time-tolerance", metavar="SECONDS", min=0, help="The largest allowed difference of times."),
    ] = None
    tolerances: Annotated[
        Path | None, typer.Option("--tolerances", metavar="FILE", help="A YAML file with tolerances.")
    ] = None
    update: Annotated[
        bool,
        typer.Option(
            "--update", help="Replace the modules' recorded outputs in the log by their outputs in this replay."
        ),
    ] = False
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="PICTURE", help="Draw recorded and replayed values into a picture (PNG, SVG, PDF)."
        ),
    ] = None
    as_json: Json = False
