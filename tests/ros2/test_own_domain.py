"""The DDS domains of tests."""

from __future__ import annotations

import pytest

from tests.ros2.fast_dds import OwnDomain

MANY = 30


def test_no_test_gets_the_domain_of_one_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A robot that was killed there is taken for alive until its lease has run out."""
    monkeypatch.setattr(OwnDomain, "_had", {})
    numbers = set()
    for _ in range(MANY):
        domain = OwnDomain()
        domain.close()
        numbers.add(domain.number)
    assert len(numbers) == MANY


def test_a_test_gets_the_domain_that_was_had_longest_ago_if_all_were(monkeypatch: pytest.MonkeyPatch) -> None:
    held = OwnDomain()
    monkeypatch.setattr(OwnDomain, "_had", dict.fromkeys([held.number, *range(1, 101)]))
    domain = OwnDomain()
    domain.close()
    held.close()
    assert domain.number != held.number
    assert list(OwnDomain._had)[-1] == domain.number
