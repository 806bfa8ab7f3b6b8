"""Looking at blueprints without running them: list, check, graph, config."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dimos_streams.cli.running.configured_blueprint import configured_blueprint
from dimos_streams.cli.terminal import options
from dimos_streams.cli.terminal.output import note, plural, shortened, write, write_json, write_lines, write_table

if TYPE_CHECKING:
    from dimos_streams.blueprint import Blueprint, Problem

_VALUE_WIDTH = 60


def list_blueprints(as_json: options.Json = False) -> None:
    """List the stock blueprints."""
    from dimos_streams.blueprint.load import stock_descriptions

    found = stock_descriptions()
    if as_json:
        write_json([{"name": name, "description": text} for name, text in found.items()], indent=2)
    elif found:
        write_table(("NAME", "DESCRIPTION"), list(found.items()))
    else:
        note("there are no stock blueprints")


def check(reference: options.Blueprint, settings: options.Settings = None, as_json: options.Json = False) -> None:
    """Report everything that is wrong with a blueprint, without starting it. Exits with 2 if it can't be run."""
    from dimos_streams.blueprint import BlueprintError
    from dimos_streams.blueprint.check import check as problems_of

    blueprint, problems = None, []
    try:
        blueprint = configured_blueprint(reference, settings)
        problems = problems_of(blueprint)
    except BlueprintError as error:
        problems = list(error.problems)
    errors = sum(problem.severity == "error" for problem in problems)
    if as_json:
        rows = [{"severity": p.severity, "where": p.where, "text": p.text} for p in problems]
        write_json({"blueprint": reference, "ok": not errors, "problems": rows}, indent=2)
    else:
        for problem in problems:
            write(str(problem))
        write(_verdict(reference, blueprint, problems, errors))
    if errors:
        raise typer.Exit(2)


def graph(
    reference: options.Blueprint,
    settings: options.Settings = None,
    form: Annotated[Literal["text", "mermaid", "json"], typer.Option("--format", help="How to draw it.")] = "text",
) -> None:
    """Draw the modules of a blueprint and what they send each other."""
    from dimos_streams.blueprint.graph import render

    write_lines(render(configured_blueprint(reference, settings), form))


def config(reference: options.Blueprint, settings: options.Settings = None, as_json: options.Json = False) -> None:
    """Show every setting of every module, and where its value is from."""
    from dimos_streams.blueprint.settings import explain

    rows = explain(configured_blueprint(reference, settings))
    if as_json:
        write_json(
            [{"module": r.module, "field": r.field, "value": r.value, "source": r.source} for r in rows], indent=2
        )
        return
    table = [(f"{row.module}.{row.field}", shortened(_shown(row.value), _VALUE_WIDTH), row.source) for row in rows]
    write_table(("SETTING", "VALUE", "FROM"), table)


def _verdict(reference: str, blueprint: Blueprint | None, problems: list[Problem], errors: int) -> str:
    if errors:
        return f"{reference}: {plural(errors, 'error')}"
    assert blueprint is not None
    warnings = f", {plural(len(problems), 'warning')}" if problems else ""
    return f"{reference}: ok, {plural(len(blueprint.modules), 'module')}{warnings}"


def _shown(value: object) -> str:
    """A value on one line; text is quoted where it would look like something else."""
    plain = isinstance(value, str) and value.isprintable() and value.strip()
    return str(value) if plain else json.dumps(value, ensure_ascii=False)
