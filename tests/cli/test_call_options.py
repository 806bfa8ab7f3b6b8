"""The command that calls a skill takes what a request for a call takes."""

from __future__ import annotations

import inspect
import typing

from dimos_streams.bridge.http.call_routes import CallBody
from dimos_streams.cli.commands.of_runs import calls
from dimos_streams.cli.commands.of_runs.call_options import NewCall
from dimos_streams.cli.option_groups.ungrouped import ungrouped
from dimos_streams.skill import OnDuplicate, OnLoss
from dimos_streams.tool_stream.gateway import CallTerms


def test_each_field_has_an_option() -> None:
    options = set(inspect.signature(ungrouped(calls.call)).parameters)
    fields = {name.removesuffix("_s") for name in CallBody.model_fields}
    assert fields - options == {
        "agent",  # the public names of skills stand for it
        "robot_order",  # a person asks for what is to be done after all orders so far
    }


def test_each_term_of_a_call_is_a_field() -> None:
    assert CallTerms.__annotations__.keys() <= CallBody.model_fields.keys()


def test_each_choice_of_a_field_is_one_of_its_option() -> None:
    options = typing.get_type_hints(NewCall)
    for name, field in (("on_duplicate", OnDuplicate), ("on_loss", OnLoss)):
        choices, _ = typing.get_args(options[name])
        assert typing.get_args(choices) == typing.get_args(field)
