"""Types that dimos has too are the same bytes there: kept ones of dimos_lcm, and an installed dimos_lcm."""

from __future__ import annotations

import json

import pytest

from dimos_streams.messages import codec
from tests.messages.dimos_wire import FIXTURE, SHARED_TYPES, main
from tests.messages.random_messages import random_message

KEPT = json.loads(FIXTURE.read_text(encoding="utf-8"))


@pytest.mark.feature("G2")
@pytest.mark.parametrize("name", SHARED_TYPES)
def test_bytes_of_dimos_are_read_and_written(name: str) -> None:
    for index, text in enumerate(KEPT["types"][name]):
        message = random_message(name, index)
        assert codec.encode(message).hex() == text
        assert codec.decode(type(message), bytes.fromhex(text)) == message


@pytest.mark.slow
def test_an_installed_dimos_lcm_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("dimos_lcm", reason="dimos_lcm is not installed: pip install dimos-lcm")
    assert main(["--messages", "20"]) == 0, capsys.readouterr().out
