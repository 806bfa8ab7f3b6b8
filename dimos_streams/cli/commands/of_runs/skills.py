"""The command that lists what can be called, or describes one skill: skills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.bridge_client import completion
from dimos_streams.cli.option_groups.bridge_choice import BridgeChoice
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note, terminal_width, write, write_json
from dimos_streams.errors import UnknownSkillError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dimos_streams.tool_stream.gateway import OfferedSkill


def skills(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="The name of a skill: describe only this one.",
            autocompletion=completion.skills,
        ),
    ] = None,
    *,
    bridge: BridgeChoice,
    as_json: options.Json = False,
) -> None:
    """List the skills that running modules offer, with their arguments; those in brackets may be left out. With a
    NAME, describe that skill: types, defaults, whether it moves the robot, what a call needs and does to others."""
    from dimos_streams.cli.bridge_client.connection import at_bridge, find_bridge

    found = at_bridge(find_bridge(bridge), lambda gateway: gateway.skills())
    if name is not None:
        _describe(_find_skill(name, found), as_json=as_json)
    elif as_json:
        write_json([skill.model_dump(mode="json") for skill in found], indent=2)
    elif found:
        _list(found)
    else:
        note("no module offers a skill")


def _describe(skill: OfferedSkill, *, as_json: bool) -> None:
    from dimos_streams.cli.terminal.skill_text import skill_lines

    if as_json:
        write_json(skill.model_dump(mode="json"), indent=2)
        return
    for line in skill_lines(skill, terminal_width()):
        write(line)


def _list(found: Sequence[OfferedSkill]) -> None:
    from dimos_streams.cli.terminal.skill_text import list_lines

    # Those by which people command agents are the most, and least often looked for here.
    for line in list_lines(sorted(found, key=lambda skill: skill.agent), terminal_width()):
        write(line)
    note("`dimos-streams skills NAME` says all of one")


def _find_skill(name: str, offered: Sequence[OfferedSkill]) -> OfferedSkill:
    """Return the skill of a name, which may have its namespace with slashes. Raises ``UnknownSkillError``."""
    from dimos_streams.common.names import skill_meant
    from dimos_streams.skill import public_names

    found = {skill.name: skill for skill in offered}
    meant = skill_meant(public_names(name)[0], found)
    if meant is None:
        raise UnknownSkillError(name, found)
    return found[meant]
