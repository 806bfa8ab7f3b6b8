"""Changes of live settings: at a run's bridge, or through a hub at a robot of it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import quote

from dimos_streams.cli.bridge_client.answers import HEALTH, SETTINGS, SettingsAnswer
from dimos_streams.client.orders import ANSWER_S
from dimos_streams.errors import SettingsError, SkillError, UserError
from dimos_streams.operator.known_names import CLI

if TYPE_CHECKING:
    from dimos_streams.cli.bridge_client.connection import BridgeAddress

_WITHIN_S = 12.0
"""Longer than a bridge waits for modules, which it asks twice where there are several."""


async def change_settings(bridge: BridgeAddress, assignments: Sequence[str]) -> SettingsAnswer:
    """Carry out ``module.setting=value`` assignments, all or none; at a hub ``robot1/module.setting=value``, all of
    one robot.

    Raises ``SettingsError`` that names each that is not possible, ``UserError`` if no single robot is named at a hub,
    an assignment names no setting, or its value stands apart, and ``SkillError``.
    """
    for name, value in pairwise(assignments):
        if name.strip() and "=" not in name + value:
            raise UserError(f"{name!r} has no value; did you mean {shlex.quote(f'{name}={value}')}?")
    for assignment in assignments:
        name, equals, _ = assignment.partition("=")
        if not (name.strip() and equals):
            raise UserError(f"{assignment!r} is not of the form MODULE.SETTING=VALUE")
    try:
        return await _post_changes(bridge, "/settings", assignments, _WITHIN_S)
    except SkillError as error:
        # A hub has no such path of its own.
        if type(error) is not SkillError or not (await bridge.get("/healthz", HEALTH)).is_hub:
            raise
    robot, own = _of_one_robot(assignments)
    try:
        done = await _post_changes(bridge, f"/robots/{quote(robot, safe='')}/settings", own, ANSWER_S)
    except SettingsError as error:
        raise SettingsError(
            {f"{robot}/{name}" if name else "": text for name, text in error.problems.items()}
        ) from error
    changes = [change.model_copy(update={"module": f"{robot}/{change.module}"}) for change in done.changes]
    return done.model_copy(update={"changes": tuple(changes)})


async def _post_changes(
    bridge: BridgeAddress, path: str, assignments: Sequence[str], within_s: float
) -> SettingsAnswer:
    body = {"assignments": list(assignments), "caller": CLI}
    return await bridge.post(path, body, SETTINGS, timeout_s=within_s)


def _of_one_robot(assignments: Sequence[str]) -> tuple[str, list[str]]:
    """Return the robot that all assignments name, and what they are at its own bridge. Raises ``UserError``."""
    robots = {_robot_of(assignment) for assignment in assignments}
    if len(robots) > 1:
        names = ", ".join(sorted(robots))
        raise UserError(f"a hub changes settings of one robot at a time, and these are of {names}")
    (robot,) = robots
    return robot, [assignment.strip().removeprefix(f"{robot}/") for assignment in assignments]


def _robot_of(assignment: str) -> str:
    robot, slash, _ = assignment.partition("=")[0].strip().partition("/")
    if not (robot and slash):
        raise UserError(f"{assignment!r} names no robot, which a hub has to know: say 'ROBOT/MODULE.SETTING=VALUE'")
    return robot
