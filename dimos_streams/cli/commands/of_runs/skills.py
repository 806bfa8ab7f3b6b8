"""skills: what can be called, or all of one skill."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Annotated

import typer

from dimos_streams.cli.bridge_client import completion
from dimos_streams.cli.commands.of_runs.calls import at_bridge
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note, write, write_json, write_table
from dimos_streams.errors import UnknownSkillError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dimos_streams.tool_stream.gateway import OfferedSkill

_UNBOUNDED = 1000
"""Width of the output, in characters, where there is no terminal."""


def skills(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A skill: only that one, with all that it states.",
            autocompletion=completion.skills,
            show_default=False,
        ),
    ] = None,
    run: options.RunOption = None,
    url: options.Url = None,
    port: options.Port = None,
    token: options.Token = None,
    as_json: options.Json = False,
) -> None:
    """List the skills that running modules offer: whether a call moves the robot, and asks an operator for approval
    when an agent makes it. With a NAME, describe that skill: arguments, what a call needs, what it does to others."""
    from dimos_streams.cli.terminal.skill_text import SKILL_COLUMNS, skill_lines, skill_rows

    found = at_bridge(lambda gateway: gateway.skills(), run, url, port, token)
    if name is not None:
        skill = _named(name, found)
        if as_json:
            write_json(skill.model_dump(mode="json"), indent=2)
            return
        for line in skill_lines(skill):
            write(line)
    elif as_json:
        write_json([skill.model_dump(mode="json") for skill in found], indent=2)
    elif found:
        width = shutil.get_terminal_size((_UNBOUNDED, 0)).columns
        # Those by which people command agents are the most, and least often looked for here.
        write_table(SKILL_COLUMNS, skill_rows(sorted(found, key=lambda skill: skill.agent), width))
    else:
        note("no module offers a skill")


def _named(name: str, offered: Sequence[OfferedSkill]) -> OfferedSkill:
    """Return the skill of a name, which may have its namespace with slashes. Raises ``UnknownSkillError``."""
    from dimos_streams.skill import public_names

    found = {skill.name: skill for skill in offered}
    try:
        return found[public_names(name)[0]]
    except KeyError:
        raise UnknownSkillError(name, found) from None
