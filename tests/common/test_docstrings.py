"""Parameters are described wherever a docstring has its ``Args:``."""

from __future__ import annotations

import pytest

from dimos_streams.common.schemas.docstrings import described

BOTH = {"turns": "How often: a number.", "wait": "How long to wait, in s."}


@pytest.mark.parametrize(
    "docstring",
    [
        "Wiggle. Args: turns: How often: a number. wait: How long to wait, in s.",
        "Wiggle.\n\nArgs: turns: How often: a number.\n      wait: How long\n      to wait, in s.",
        "Wiggle.\nArgs: turns: How often: a number. wait: How long to wait, in s.",
        "Wiggle.\n\nArgs:\n    turns: How often: a number.\n    wait: How long to wait, in s.",
    ],
)
def test_in_a_line_or_in_a_section(docstring: str) -> None:
    assert described(docstring, ["turns", "wait"]) == ("Wiggle.", BOTH)


@pytest.mark.parametrize(
    "docstring", ["", "Wiggle. Args: none.", "Wiggle. Args: steps: 3.", "Wiggle, see turns: it."]
)
def test_what_names_no_parameter_is_text(docstring: str) -> None:
    assert described(docstring, ["turns", "wait"]) == (docstring, {})
    assert described(docstring, []) == (docstring, {})
