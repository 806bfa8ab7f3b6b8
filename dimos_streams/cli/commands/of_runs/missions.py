"""The command that shows the missions of a run: missions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dimos_streams.cli.system.abbreviated_ids import find_abbreviated
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import local_time, note, write, write_json, write_table
from dimos_streams.common.readable.plural import plural
from dimos_streams.common.readable.shortening import beginning

if TYPE_CHECKING:
    from dimos_streams.agent.record.read_record import RecordedMission
    from dimos_streams.operator.messages.agent import AgentEvent

_SHOWN = 70
_LINE = 300
_LEFT_OUT = ("event", "id", "damage", "why_cut")


def missions(
    mission: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="The id of a mission, or its beginning: show what happened in this one."),
    ] = None,
    run: options.KeptRunOption = None,
    as_json: options.Json = False,
) -> None:
    """List the missions of a run, oldest first, with their usage and cost, or show what happened in one."""
    from dimos_streams.agent.record.read_record import read_missions
    from dimos_streams.agent.record.record_files import FOLDER
    from dimos_streams.cli.terminal.log_files import find_run_dir
    from dimos_streams.common.process.run_owner import is_ended_run, run_id_of

    run_dir = find_run_dir(run)
    folder, open_state = run_dir / FOLDER, "cut off" if is_ended_run(run_dir) else "not over"
    found = read_missions(folder) if folder.is_dir() else []
    if mission is not None:
        _show(_find_mission(found, mission, run_id_of(run_dir)), open_state, as_json)
    elif as_json:
        write_json([_summary(each) for each in found], indent=2)
    elif found:
        write_table(
            ("MISSION", "AGENT", "BEGAN", "STATE", "TOKENS", "COST", "INPUT"),
            [_row(each, open_state) for each in found],
        )
    else:
        note("no missions were recorded")


def _find_mission(found: list[RecordedMission], id: str, run: str) -> RecordedMission:
    """Return the mission of that id, or of the only one that begins so, among those of a run. Raises
    ``UserError``."""
    from dimos_streams.errors import UserError, suggest

    lists = f"`dimos-streams missions --run {run}` lists them" if found else "it has recorded none"
    if not id:
        raise UserError(f"the id of a mission of run {run} is empty; {lists}")
    matching = find_abbreviated(id, found, lambda each: each.id)
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UserError(f"several missions begin with {id!r}: {', '.join(each.id for each in matching)}")
    raise UserError(f"no mission is called {id!r} in run {run}{suggest(id, [each.id for each in found])}; {lists}")


def _summary(mission: RecordedMission) -> dict[str, Any]:
    """Return a summary of a mission. Usage counts as far as it is recorded."""
    usage, done, end = mission.usage, mission.done, mission.end
    costs = [data["cost"] for data in usage if data["cost"] is not None]
    return {
        "id": mission.id,
        "agent": mission.agent,
        "input": mission.input,
        "began_utime": mission.start.utime,
        "ended_utime": done.utime if done else None,
        "reason": end["reason"] if end else None,
        "text": end["text"] if end else "",
        "undone": mission.undone,
        "requests": len(usage),
        "input_tokens": sum(data["input_tokens"] for data in usage),
        "output_tokens": sum(data["output_tokens"] for data in usage),
        "cost": sum(costs) if costs else None,
        "file": str(mission.path),
    }


def _state(summary: dict[str, Any], open_state: str) -> str:
    state: str = summary["reason"] or open_state
    return f"{state}, {plural(len(summary['undone']), 'call')} undone" if summary["undone"] else state


def _row(mission: RecordedMission, open_state: str) -> tuple[str, ...]:
    summary = _summary(mission)
    cost, text = summary["cost"], " ".join(summary["input"].split())
    return (
        summary["id"],
        summary["agent"],
        local_time(summary["began_utime"]),
        _state(summary, open_state),
        str(summary["input_tokens"] + summary["output_tokens"]),
        "-" if cost is None else f"{cost:.4f}",
        beginning(text, _SHOWN),
    )


def _show(mission: RecordedMission, open_state: str, as_json: bool) -> None:
    if as_json:
        events = [event.model_dump(mode="json") for event in mission.events]
        write_json({**_summary(mission), "events": events}, indent=2)
        return
    for event in mission.events:
        write(f"{local_time(event.utime)}  {event.kind:15}  {_text(event)}")
    summary = _summary(mission)
    cost = "" if summary["cost"] is None else f", cost {summary['cost']:.4f}"
    tokens = f"{summary['input_tokens']} + {summary['output_tokens']} tokens"
    write(f"{_state(summary, open_state)}: {summary['requests']} requests, {tokens}{cost}")


def _text(event: AgentEvent) -> str:
    """Return the event in a line."""
    data = dict(event.data)
    said = " ".join(str(data.pop("text", "")).split())
    for name in _LEFT_OUT:
        data.pop(name, None)
    rest = " ".join(f"{name}={_plain(value)}" for name, value in data.items() if value not in (None, "", [], {}))
    return beginning("  ".join(part for part in (said, rest) if part), _LINE)


def _plain(value: object) -> str:
    """Return a text as it is, and any other value in JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
