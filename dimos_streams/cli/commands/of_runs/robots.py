"""The operator's last word: stop-robot, release-robot, and the end of all calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.exit_codes import FAILED
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice, Bridges
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import write, write_json
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.robot_orders import OrderResult
    from dimos_streams.client.orders import Order

_ROBOT = typer.Argument(metavar="[ROBOT]", help="The namespace of a robot (`robot1`). Without it: every robot.")
Robot = Annotated[str, _ROBOT]
Released = Annotated[str | None, _ROBOT]
Reason = Annotated[str, typer.Option("--reason", help="The reason that is shown while robots are stopped.")]


def stop_robot(
    robot: Robot = "",
    reason: Reason = "",
    *,
    bridge: Bridges,
    as_json: options.Json = False,
) -> None:
    """Have robots stand still, at once, until `release-robot`. Exit code 1 unless every velocity gate says it holds.

    No agent and no queue takes part in it: the bridge itself holds the velocity gates, against teleoperation too,
    ends the motions that run, and begins no other.
    """
    _order("/robots/stop", robot, reason, bridge, as_json=as_json)


def release_robot(
    robot: Released = None,
    *,
    bridge: Bridges,
    as_json: options.Json = False,
) -> None:
    """Let robots move again after `stop-robot`. Nothing goes on by itself: what was ended is to be asked for anew."""
    if robot == "":  # a variable of a script that is empty; a stop of nobody stops every robot
        raise UserError("'' names no robot: nothing is released; without a name every robot is")
    _order("/robots/release", robot or "", "", bridge, as_json=as_json)


def cancel_all(reason: str, bridge: BridgeChoice, *, as_json: bool) -> None:
    """Cancel every call; raises ``typer.Exit(1)`` if one does not end within a bound."""
    _order("/calls/cancel", "", reason, bridge, as_json=as_json)


def _order(
    order: Order,
    robot: str,
    reason: str,
    bridge: BridgeChoice,
    *,
    as_json: bool,
) -> None:
    from dimos_streams.cli.bridge_client.robot_orders import give, order_targets
    from dimos_streams.cli.system.async_runner import run_async

    to = order_targets(bridge)

    def show(result: OrderResult) -> None:
        for line in [] if as_json else result.lines:
            write(f"{result.target}: {line}" if len(to) > 1 else line)

    results = run_async(give(order, robot, reason, to, show))
    if as_json:
        write_json([result.to_dict() for result in results], indent=2)
    if not all(result.done for result in results):
        raise typer.Exit(FAILED)
