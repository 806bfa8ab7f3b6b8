"""The modules that a directory knows, within bounds, and how much they have said."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams import clock
from dimos_streams.messages.dimos_streams import ModuleStatus
from dimos_streams.skill import SkillInfo
from dimos_streams.tool_stream.liveness import module_table
from dimos_streams.tool_stream.liveness.module_entry import DEPARTED_S, ModuleEntry
from dimos_streams.tool_stream.liveness.skill_fragments import PartialSkills, SkillFragment
from tests.tool_stream.liveness.test_speakers import status


@pytest.mark.virtual_time
async def test_names_that_nobody_has_spoken_for_long_push_out_none_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module_table, "MAX_NEW", 2)
    table = module_table.ModuleTable()

    def beat(name: str) -> bool:
        if name not in table.entries:
            if not table.make_room():
                return False
            table.entries[name] = ModuleEntry(since=clock.monotonic(), heard=clock.monotonic())
        entry = table.entries[name]
        assert entry.instances.heard(ModuleStatus(module=name, instance="1"), clock.monotonic())
        table.heard(name, entry)
        return True

    for _ in range(10):
        assert all(map(beat, ("a", "b")))
        await asyncio.sleep(0.25)
    assert all(map(beat, ("c", "d"))), "those of before have spoken for long by now"
    assert not beat("e")
    await asyncio.sleep(1.0)
    assert beat("d")
    await asyncio.sleep(1.0)
    assert beat("e")
    assert list(table.entries) == ["a", "b", "d", "e"], "the one that was silent for longest has gone"


@pytest.mark.virtual_time
async def test_the_module_silent_for_longest_is_forgotten_first_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module_table, "MAX_NEW", 2)
    table = module_table.ModuleTable()

    def heard(*names: str) -> None:
        for name in names:
            if name not in table.entries:
                assert table.make_room()
                table.entries[name] = ModuleEntry(since=clock.monotonic(), heard=clock.monotonic())
            table.heard(name, table.entries[name])

    heard("a", "b", "a")
    assert list(table.entries) == ["b", "a"]
    for one, other in (("c", "d"), ("e", "f")):
        await asyncio.sleep(2.0)
        heard(one, other)
        assert list(table.entries) == [one, other]


@pytest.mark.virtual_time
async def test_time_in_which_nobody_could_be_heard_makes_no_gone_instance_live() -> None:
    await asyncio.sleep(1.0)
    entry = ModuleEntry(since=clock.monotonic(), heard=clock.monotonic())
    assert entry.instances.heard(status("1"), clock.monotonic())
    entry.turn_to_active()
    entry.token("1", is_there=False)
    entry.excuse(10.0)
    lost_at = clock.monotonic() + 10.0
    assert (entry.departed(lost_at), entry.departed(lost_at + DEPARTED_S)) == (False, True)


def test_parts_of_another_description_are_forgotten() -> None:
    def part(number: int, parts: int) -> SkillFragment:
        info = SkillInfo(name=f"s{number}of{parts}", description="", parameters={})
        return SkillFragment(part=number, parts=parts, skills=(info,))

    partial = PartialSkills()
    for version, number, parts, bytes in (("1", 0, 3, 10), ("1", 1, 3, 20), ("2", 0, 3, 10), ("2", 0, 2, 10)):
        assert partial.add(version, part(number, parts), 10) is None
        assert partial.bytes == bytes
    skills = partial.add("2", part(1, 2), 10)
    assert skills is not None
    assert [info.name for info in skills] == ["s0of2", "s1of2"]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from(["skills", "part", "state", "silence"]),
            st.integers(0, 3),
            st.integers(1, 400),
            st.sampled_from("123"),
        ),
        max_size=30,
    )
)
def test_a_directory_knows_how_much_its_modules_have_said(
    steps: list[tuple[str, str, int, int, str]],
) -> None:
    async def scenario() -> None:
        table = module_table.ModuleTable()
        for name, what, number, size, instance in steps:
            if what == "silence":
                await asyncio.sleep(number)
                continue
            if name not in table.entries:
                if not table.make_room():
                    continue
                table.entries[name] = ModuleEntry(since=clock.monotonic(), heard=clock.monotonic())
            entry = table.entries[name]
            if entry.instances.heard(ModuleStatus(module=name, instance=instance), clock.monotonic()):
                table.heard(name, entry)
                table.turn_to_active(name, entry)
            report = entry.current
            version, text = f"v{number // 2}", "x" * size
            if what == "skills":
                table.take_skills(report, ModuleStatus(module=name, skills_version=version, skills_json=text), ())
            elif what == "part":
                part = SkillFragment(part=number % 2, parts=2, skills=())
                table.take_fragment(report, ModuleStatus(module=name, skills_version=version, skills_json=text), part)
            else:
                table.take_state(report, ModuleStatus(module=name, state_json=json.dumps({"x": text})))
            assert table.bytes == sum(each.bytes for each in table.entries.values())
            assert table.new_bytes == sum(table.entries[each].bytes for each in table._new)
            assert table.bytes <= 1000
            assert len(table.entries) <= 2
            assert name in table.entries, "who speaks is not forgotten"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module_table, "MAX_BYTES", 1000)
        patch.setattr(module_table, "MAX_MODULES", 2)
        clock.run_virtual(scenario())
