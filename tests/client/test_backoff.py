"""The delays before repeated attempts."""

from __future__ import annotations

import random

import pytest

from dimos_streams.client.backoff import Backoff
from dimos_streams.client.http_gateway import HttpGateway


def delays(backoff: Backoff, count: int) -> list[float]:
    return [backoff.next() for _ in range(count)]


@pytest.mark.parametrize(
    ("initial_s", "least"), [(1.0, [1.0, 2.0, 4.0, 5.0, 5.0]), (5.0, [5.0] * 5), (30.0, [30.0] * 5)]
)
def test_delays_double_up_to_the_longest_and_are_never_shorter_than_the_first(
    initial_s: float, least: list[float]
) -> None:
    backoff = Backoff(random.Random(1), initial_s=initial_s, maximum_s=5.0)
    for _ in range(2):
        assert all(one <= delay <= 1.5 * one for one, delay in zip(least, delays(backoff, 5), strict=True))
        backoff.reset()


def test_delays_have_no_end() -> None:
    backoff = Backoff(random.Random(1), initial_s=1.0, maximum_s=5.0)
    assert max(delays(backoff, 2000)) <= 7.5


def test_a_script_need_not_say_by_what_its_clients_are_apart() -> None:
    assert 1.0 <= Backoff(initial_s=1.0).next() <= 1.5
    HttpGateway("http://127.0.0.1:1").close()
