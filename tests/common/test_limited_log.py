"""Log lines that may come a million times: one per second and kind, and no kind hides another."""

from __future__ import annotations

import asyncio
import logging

import pytest

from dimos_streams.common.limited_log import LimitedLog


def fail_at(place: str) -> None:
    if place == "camera":
        raise ValueError("bad frame")
    raise ValueError("bad pose")


@pytest.mark.virtual_time
async def test_exceptions_count_as_alike_if_they_come_from_one_place(settled_log: pytest.LogCaptureFixture) -> None:
    log = LimitedLog(logging.getLogger(__name__))
    for number in range(50):
        for place in ("camera", "odometry"):
            try:
                fail_at(place)
            except ValueError as error:
                log.exception("handler of %s, message %d, failed: %s", place, number, error)
    assert settled_log.messages == [
        "handler of camera, message 0, failed: bad frame",
        "handler of odometry, message 0, failed: bad pose",
    ]
    await asyncio.sleep(1.0)
    try:
        fail_at("camera")
    except ValueError:
        log.exception("handler of %s, message %d, failed: %s", "camera", 50, "bad frame")
    assert settled_log.messages[2:] == ["handler of camera, message 50, failed: bad frame (and 49 more like it)"]


@pytest.mark.virtual_time
async def test_warnings_count_as_alike_if_they_have_one_format(settled_log: pytest.LogCaptureFixture) -> None:
    log = LimitedLog(logging.getLogger(__name__))
    for number in range(3):
        log.warning("dropped message %d", number)
        log.warning("left out %d messages", number)
    assert settled_log.messages == ["dropped message 0", "left out 0 messages"]
