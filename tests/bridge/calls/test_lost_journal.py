"""A bridge that has lost its journal hears from all modules which calls they run before it gives anything away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from dimos_streams.errors import CallRejectedError
from dimos_streams.messages.codec import encode
from dimos_streams.messages.dimos_streams import SkillCall
from dimos_streams.testing import Faults
from dimos_streams.tool_stream.event import Outcome
from dimos_streams.tool_stream.protocol.channels import CALLS, STATUS
from tests.bridge.scene import Scene, answered, closed, scene
from tests.helpers import until

pytestmark = pytest.mark.virtual_time


def damage(journal: Path) -> None:
    """Have the file be no journal."""
    journal.write_bytes(b"no journal" * 1000)


def replace(journal: Path) -> None:
    """Have no file be possible, so that the journal is in memory."""
    for file in journal.parent.glob(f"{journal.name}*"):
        file.unlink()
    journal.mkdir()


async def lose(world: Scene, journal: Path, how: Callable[[Path], None]) -> None:
    """Have the bridge start again without its journal."""
    await world.kill_bridge()
    how(journal)
    await world.start_bridge()


@pytest.mark.parametrize("how", [damage, replace])
async def test_what_a_call_holds_is_not_given_to_another(how: Callable[[Path], None], tmp_path: Path) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        await answered(
            world.broker, holder := await world.broker.call("follow", {"description": "ann"}, caller="you")
        )
        world.processes[1].bus.faults = Faults(delay_s=(1.2, 1.2))
        await asyncio.sleep(2.0)
        await lose(world, tmp_path / "journal.sqlite", how)
        await world.offered("at_once")
        with pytest.raises(CallRejectedError, match=f"needs 'base', which .*call '{holder}'"):
            await world.broker.call("at_once", {"value": 1}, caller="you")


async def test_what_a_running_skill_asks_for_waits_until_its_own_call_is_known(tmp_path: Path) -> None:
    async with scene(journal=tmp_path / "journal.sqlite") as world:
        parent = await world.broker.call("patrol", {}, caller="you")
        await asyncio.sleep(1.0)
        world.processes[1].bus.faults = Faults(delay_s=(1.2, 1.2), affects=lambda channel: channel == STATUS)
        await asyncio.sleep(1.0)
        await lose(world, tmp_path / "journal.sqlite", replace)
        arguments = '{"label": "n", "to": 1}'
        asked = SkillCall(call_id=f"{parent}~1", skill="count", parent=parent, arguments_json=arguments)
        world.inner.publish(CALLS, encode(asked))
        await until(lambda: world.broker.ledger.calls.get(f"{parent}~1"))
        assert (await closed(world.broker, f"{parent}~1")).outcome is Outcome.COMPLETED
