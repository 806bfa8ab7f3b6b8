"""Which of its instances speaks for a module."""

from __future__ import annotations

import asyncio
import datetime

import pytest

from dimos_streams import clock
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.tool_stream.liveness.instances import Instance, Instances, listed


def status(instance: str, started: int = 1, **more: object) -> ModuleStatus:
    return ModuleStatus(module="m", instance=instance, started_utime=started, pid=7, host="h", **more)  # type: ignore[arg-type]


def test_an_instance_that_another_one_has_followed_is_known_by_its_process() -> None:
    instances = Instances()
    for at, (instance, pid) in enumerate((("1", 11), ("2", 12))):
        assert instances.heard(ModuleStatus(module="m", instance=instance, pid=pid), float(at))
    found = [instances.of_process(pid) for pid in (11, 12, 13)]
    assert [instance and instance.id for instance in found] == ["1", "2", None]


def test_an_established_instance_is_followed_by_another_one_when_it_is_silent_for_long() -> None:
    instances = Instances()
    for quarter in (*range(9), *range(16, 60)):
        instances.heard(status("1" if quarter < 9 else "2"), quarter / 4)
    assert instances.established is not None
    assert instances.established.id == "2"


def test_one_instance_speaks_until_it_falls_silent_and_another_is_heard() -> None:
    seen = Instances()
    assert (seen.active, seen.is_active("a"), seen.alive(0.0), seen.superseded("a", 0.0)) == (
        None,
        False,
        False,
        False,
    )
    assert seen.heard(status("a"), 0.0)
    assert seen.superseded("z", 0.1), "one that is not known, beside one that is"
    assert not seen.heard(status("b"), 0.75)
    assert seen.is_active("a")
    assert not seen.superseded("a", 0.75)
    assert seen.superseded("a", 0.76), "silent for longer than another one"
    assert seen.heard(status("b"), 0.76)
    assert (seen.is_active("b"), seen.is_active("a")) == (True, False)
    assert seen.active == Instance(1, "b", 7, "h")
    assert seen.heard(status("b"), 5.0)
    assert not seen.superseded("b", 9.0), "nobody has followed"
    assert not seen.heard(status("a"), 5.1), "it comes back, but does not speak any more"
    assert seen.contradicting(5.5) == [], "that was active once"


def test_an_established_instance_that_is_heard_again_speaks_again() -> None:
    seen = Instances()
    for now in (0.0, 1.0, 2.0):
        assert seen.heard(status("real"), now)
    assert seen.heard(status("forged"), 2.8)
    for number in range(20):
        assert not seen.heard(status(f"forged{number}"), 2.9)
    assert (seen.is_known("real"), seen.is_known("forged"), seen.is_known("forged19")) == (True, True, False)
    assert seen.heard(status("real"), 3.0)
    assert (seen.is_active("real"), seen.is_known("forged"), seen.superseded("real", 3.1)) == (True, False, False)
    for now in (4.0, 9.0, 12.9):
        assert seen.heard(status("next"), now)
    assert seen.is_known("real"), "silent for 9.9 s"
    assert seen.heard(status("next"), 13.1)
    assert not seen.is_known("real")
    assert not seen.heard(status("real"), 13.2)


def test_time_in_which_nobody_could_be_heard_establishes_no_instance() -> None:
    seen = Instances()
    seen.heard(status("a"), 0.0)
    seen.excuse(10.0)
    assert seen.heard(status("a"), 10.5)
    assert seen.established is None
    assert seen.heard(status("a"), 12.0)
    assert seen.established == Instance(1, "a", 7, "h")


def test_who_contradicts_is_reported_once_and_not_for_a_heartbeat_that_was_overtaken() -> None:
    seen = Instances()
    seen.heard(status("a"), 0.0)
    seen.heard(status("b"), 0.1)
    assert seen.contradicting(0.3) == []
    assert [one.id for one in seen.contradicting(0.31)] == ["b"]
    assert seen.contradicting(0.4) == []


def test_instances_that_are_heard_for_a_while_run_side_by_side() -> None:
    seen = Instances()
    seen.heard(status("young", started=2), 0.0)
    for now in (0.2, 0.5, 0.79):
        seen.heard(status("young", started=2), now)
        seen.heard(status("old", started=1), now)
    assert seen.side_by_side(0.79, 1.5) == []
    for now in (0.81, 1.0):
        seen.heard(status("young", started=2), now)
        seen.heard(status("old", started=1), now)
    seen.heard(status("straggler", started=0), 1.0)
    assert [one.id for one in seen.side_by_side(1.0, 1.5)] == ["old", "young"]
    assert [one.id for one in seen.side_by_side(2.5, 1.5)] == ["old", "young"]
    assert seen.side_by_side(2.51, 1.5) == []


def test_other_instances_are_bounded() -> None:
    seen = Instances()
    for number in range(10):
        seen.heard(status(f"i{number}"), 0.5)
        seen.heard(status("i1"), 0.5)
    assert [seen.superseded(f"i{number}", 1.2) for number in (1, 4, 9)] == [False, False, False]
    seen.heard(status("i0"), 1.5)
    seen.heard(status("i1"), 1.5)
    found = [one.id for one in seen.side_by_side(1.5, 1.5)]
    assert found == ["i0", "i1"]
    assert len(seen.contradicting(1.5)) == 7


def test_instances_in_words() -> None:
    one, other = Instance(0, "a", 7, ""), Instance(1_700_000_000_000_000, "b", 8, "host")
    assert str(one) == "pid 7 on an unknown host, instance a"
    assert str(Instance(0, "1a2b-7-5e7f", 7, "")).endswith("instance 1a2b-7"), "its secret is nobody's"
    since = datetime.datetime.fromtimestamp(1_700_000_000).astimezone()
    assert str(other) == f"pid 8 on host since {since:%Y-%m-%d %H:%M:%S}, instance b"
    assert listed([one, one]) == f"{one}; {one}"
    assert "since" not in str(Instance(2**62, "a", 7, "h"))
    long = Instance.of(ModuleStatus(instance="i" * 100, host="h" * 100))
    assert (long.id, long.host) == ("i" * 64, "h" * 64)


@pytest.mark.virtual_time
@pytest.mark.parametrize("ahead_s", [10.0, -10.0])
async def test_whether_a_module_was_started_since_is_told_by_one_clock(ahead_s: float) -> None:
    """Its machine's may be set otherwise than the bridge's."""
    seen, ahead = Instances(), round(ahead_s * 1e6)

    def beat(id: str, age_s: float) -> None:
        utime = clock.utime() + ahead
        seen.heard(ModuleStatus(module="m", instance=id, utime=utime, started_utime=utime - round(age_s * 1e6)), 0.0)

    beat("first", 5.0)
    asked = clock.utime()
    assert not seen.begun_since(asked, besides="")
    await asyncio.sleep(2.0)
    beat("second", 1.0)
    assert seen.begun_since(asked, besides="first")
    assert not seen.begun_since(clock.utime(), besides="second")
