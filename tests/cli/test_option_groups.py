"""Groups of options, of which typer sees each, and the command all in one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from dimos_streams.cli.option_groups.ungrouped import ungrouped


@dataclass(frozen=True, kw_only=True)
class Tea:
    """A group with a field that must be given."""

    kind: Annotated[str, typer.Argument()]
    cups: Annotated[int, typer.Option("--cups", help="How many.")] = 1


@dataclass(frozen=True, kw_only=True)
class HotTea(Tea):
    """A group of which one option is described otherwise."""

    cups: Annotated[int, typer.Option("--cups", help="Small ones.")] = 2


served: list[object] = []


def serve(
    table: Annotated[str, typer.Option("--table")] = "1",
    *,
    tea: HotTea,
    now: Annotated[bool, typer.Option("--now")] = False,
) -> None:
    """Serve tea."""
    served.append((table, tea, now))


def test_options_of_a_group_stand_in_its_place_and_reach_the_command_as_one() -> None:
    app = typer.Typer()
    app.command()(ungrouped(serve))
    command = typer.main.get_command(app)
    params = {each.name: each for each in command.params if each.name in ("table", "kind", "cups", "now")}
    assert [*params] == ["table", "kind", "cups", "now"]
    assert getattr(params["cups"], "help", "") == "Small ones.", (
        "that of the group itself, not of the one it is based on"
    )
    assert command.help == "Serve tea."
    served.clear()
    command(["green", "--now"], standalone_mode=False)
    command(["black", "--cups", "3", "--table", "7"], standalone_mode=False)
    assert served == [("1", HotTea(kind="green"), True), ("7", HotTea(kind="black", cups=3), False)]


@dataclass(frozen=True, kw_only=True)
class Tray:
    """A group with a group in it."""

    sugar: Annotated[bool, typer.Option("--sugar")] = False
    tea: HotTea
    milk: Annotated[bool, typer.Option("--milk")] = False


def carry(*, tray: Tray) -> None:
    """Carry a tray."""
    served.append(tray)


def test_the_options_of_a_group_in_a_group_stand_in_its_place() -> None:
    app = typer.Typer()
    app.command()(ungrouped(carry))
    command = typer.main.get_command(app)
    names = [each.name for each in command.params]
    assert [name for name in names if name in ("sugar", "kind", "cups", "milk")] == ["sugar", "kind", "cups", "milk"]
    served.clear()
    command(["green", "--milk", "--cups", "3"], standalone_mode=False)
    assert served == [Tray(tea=HotTea(kind="green", cups=3), milk=True)]
