"""How long an orphaned bridge stays."""

from __future__ import annotations

from typing import cast

import pytest

from dimos_streams import clock
from dimos_streams.runtime.processes.orphaned import hear_last_ends, watch_parent
from dimos_streams.tool_stream.gateway import CallView, SkillGateway
from tests.helpers import no_threads

pytestmark = pytest.mark.virtual_time
CALL = CallView(call_id="c", skill="move", module="drive", caller="cli", parent="", arguments={}, state="open")


class Calls:
    """A bridge's calls, of which one is open until a time."""

    def __init__(self, open_for_s: float) -> None:
        self._until = clock.monotonic() + open_for_s

    async def calls(self, *, open_only: bool = False) -> list[CallView]:
        assert open_only
        return [CALL] if clock.monotonic() < self._until else []


@pytest.mark.parametrize(("open_for_s", "stays_s"), [(0.0, 0.0), (0.5, 0.5), (60.0, 1.0)])
async def test_a_bridge_stays_until_the_calls_of_others_have_ended_within_a_bound(
    open_for_s: float, stays_s: float
) -> None:
    began = clock.monotonic()
    await hear_last_ends(cast("SkillGateway", Calls(open_for_s)))
    assert clock.monotonic() - began == pytest.approx(stays_s, abs=0.05)


async def test_a_worker_that_could_not_see_the_end_of_its_run_does_not_begin() -> None:
    with no_threads(), pytest.raises(OSError, match="no more threads"):
        watch_parent(lambda: None)
