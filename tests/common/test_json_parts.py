"""What clients send is counted before it is parsed."""

from __future__ import annotations

import json

import pytest

from dimos_streams.bridge.http.ending_requests import ends_something
from dimos_streams.bridge.live.requests import parse_request
from dimos_streams.bridge.monitor.commands import Commands
from dimos_streams.bridge.monitor.lanes import Lanes
from dimos_streams.common.json.reading import parse_client_json
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problems import ProblemError
from dimos_streams.serving.route import parsed_body
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS
from dimos_streams.viewer.transport_commands import transport_command
from tests.bridge.monitor.toy_agent import agents

_NESTED = "[" + ",".join(["[" * 90 + "]" * 90] * 1400) + "]"
_NAMES = json.dumps(dict.fromkeys(map(str, range(10_001)), 0))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_NESTED, "it has 127400 lists, objects and commas, 30000 are possible"),
        (_NAMES, "it has 10001 names, 10000 are possible"),
    ],
)
def test_what_has_more_parts_than_anything_that_can_be_asked_for_is_not_parsed(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_client_json(text)
    with pytest.raises(ProblemError, match=why) as refused:
        parsed_body(text.encode(), parse_client_json)
    assert refused.value.kind == problem_kinds.BAD_JSON
    with pytest.raises(ValueError, match=why):
        parse_request(text)
    assert parsed_body(text.encode()), "robots send their hub batches of many calls' events"


def test_a_request_that_would_end_something_and_a_viewers_command_are_counted_too() -> None:
    """Both are read before anything else looks at them."""
    pause = f'{{"skill":"pause","arguments":{{"a":{_NESTED}}}}}'
    assert ends_something("/calls", b'{"skill":"pause","arguments":{}}')
    assert not ends_something("/calls", pause.encode()), "it is refused whenever it comes"
    with pytest.raises(ValueError, match="lists, objects and commas"):
        transport_command(f'{{"command":"speed","speed":{_NESTED}}}')


@pytest.mark.virtual_time
async def test_an_operators_command_is_counted_before_it_is_parsed() -> None:
    async with agents("agent") as (scene, _):
        answer = await Commands(scene.broker).carry_out(f'{{"command":"say","text":{_NESTED}}}', Lanes())
    assert b'"bad-json"' in answer
    assert b"lists, objects and commas" in answer


def test_all_arguments_that_a_call_can_have_are_parsed_and_texts_have_no_parts() -> None:
    lists = "[[]" + ",[]" * ((MAX_ARGUMENTS - 10) // 3) + "]"
    names = "[" + '{"":' * (MAX_ARGUMENTS // 5 // 100) + "0" + "}" * (MAX_ARGUMENTS // 5 // 100) + "]"
    for text in (f'{{"a":{lists}}}', names, json.dumps(['\\"[{,:' * 20_000])):
        assert parse_client_json(text) == json.loads(text)
