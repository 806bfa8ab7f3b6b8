"""What clients send is counted before it is parsed."""

from __future__ import annotations

import json

import pytest

from dimos_streams.bridge.live.requests import parse_request
from dimos_streams.common.json.reading import parse_client_json
from dimos_streams.serving import problem_kinds
from dimos_streams.serving.problems import ProblemError
from dimos_streams.serving.route import parsed_body
from dimos_streams.tool_stream.protocol.bounds import MAX_ARGUMENTS

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


def test_all_arguments_that_a_call_can_have_are_parsed_and_texts_have_no_parts() -> None:
    lists = "[[]" + ",[]" * ((MAX_ARGUMENTS - 10) // 3) + "]"
    names = "[" + '{"":' * (MAX_ARGUMENTS // 5 // 100) + "0" + "}" * (MAX_ARGUMENTS // 5 // 100) + "]"
    for text in (f'{{"a":{lists}}}', names, json.dumps(['\\"[{,:' * 20_000])):
        assert parse_client_json(text) == json.loads(text)
