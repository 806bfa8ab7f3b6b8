"""Patterns in rules that would fit nothing are refused, so that no rule is there in vain."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from dimos_streams.agent.policies.gates.approval import matches
from dimos_streams.agent.policies.gates.matching.patterns import fits
from dimos_streams.agent.policies.gates.settings import ApprovalRule

pytestmark = pytest.mark.feature("B8")


@pytest.mark.parametrize("pattern", [">= two", "=1", "<", " >2 or 3"])
def test_what_begins_as_a_comparison_and_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(ValidationError, match="is no comparison with numbers"):
        ApprovalRule(arguments={"n": pattern})


@pytest.mark.parametrize("value", ["3", None, True, [3], {"n": 3}])
def test_what_is_no_number_fits_no_comparison(value: Any) -> None:
    assert fits(">2 <9", 3)
    assert not fits(">2 <9", value)


@pytest.mark.parametrize(
    ("pattern", "value", "is_meant"),
    [
        (">100", "500", True),
        (">100", " 5e2 ", True),
        (">100", "50", False),
        (">100", "many", False),
        (">100", ["500"], False),
        ("5*", "500", True),
        ("500", "5e2", True),
        ("500", 500.0, True),
        (500, " 500 ", True),
        (500, "501", False),
        (0.1, "1e-1", True),
        (10**400, "1", False),
        (1, True, False),
        ("nan", "nan", True),
        ({"eur": [500]}, {"eur": ["500"]}, True),
        ({"eur": [500]}, {"eur": ["500", 1]}, False),
        ({"eur": "*"}, {"eur": "500"}, False),
    ],
)
def test_a_number_that_is_written_otherwise_is_no_way_around_a_rule(pattern: Any, value: Any, is_meant: bool) -> None:
    rule = ApprovalRule(skill="pay", arguments={"amount": pattern}, action="deny")
    assert matches(rule, "pay", {"amount": value}, "agent") is is_meant


@pytest.mark.parametrize(("value", "is_meant"), [(500, True), ("500", False), ("5e2", False)])
def test_what_may_be_another_text_to_a_skill_is_not_allowed_by_a_rule(value: Any, is_meant: bool) -> None:
    rule = ApprovalRule(skill="pay", arguments={"amount": 500}, action="allow")
    assert matches(rule, "pay", {"amount": value}, "agent") is is_meant


@pytest.mark.parametrize("target", [{"x": ">2"}, {"pose": {"x": ">2"}}])
def test_a_comparison_within_an_object_which_no_number_could_fit_is_refused(target: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"an object is compared as a whole; write 'ARGUMENT\.(pose\.)?x'"):
        ApprovalRule(arguments={"target": target})
