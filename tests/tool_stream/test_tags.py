"""Tags that skills declare, checked where they are declared and where they are heard of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from pydantic import ValidationError

from dimos_streams.skill import SkillInfo, skill, skills_of
from dimos_streams.skill.tags import MAX_TAG, MAX_TAGS
from dimos_streams.skills.drive import Drive
from dimos_streams.skills.follow_person import FollowPerson
from dimos_streams.skills.look_out_for import LookOut
from dimos_streams.skills.observe import Observe
from dimos_streams.skills.patrol import Patrol

pytestmark = pytest.mark.feature("K5")


def declared(tags: Iterable[str]) -> Callable[[Any], Any]:
    return skill(tags=tags)(lambda self: None)


@pytest.mark.parametrize(
    "tag",
    [
        "",
        "Safe",
        "säfe",
        "s\u0430fe",
        "tag:safe",
        "!safe",
        "sa fe",
        "safe\n",
        "1st",
        "-x",
        "x" * (MAX_TAG + 1),
        "*",
        3,
    ],
)
def test_what_is_no_tag_is_refused(tag: Any) -> None:
    with pytest.raises(TypeError, match=r"is no tag: it begins with a small letter|must be a text"):
        declared([tag])
    with pytest.raises(ValidationError):
        SkillInfo(name="x", description="", parameters={}, tags=(tag,))


def test_tags_are_bounded_in_number_and_length() -> None:
    most = [f"t{number}" for number in range(MAX_TAGS)]
    declared([*most, "t0", "t1"])
    with pytest.raises(TypeError, match=f"at most {MAX_TAGS} items"):
        declared([*most, "x" * MAX_TAG])
    with pytest.raises(ValidationError):
        SkillInfo(name="x", description="", parameters={}, tags=(*most, "x" * MAX_TAG))


def test_one_text_is_not_taken_for_its_letters() -> None:
    with pytest.raises(TypeError, match=r"tags=\('safe',\)"):
        skill(tags="safe")(lambda self: None)
    with pytest.raises(TypeError, match=r"resources=\('base',\)"):
        skill(resources="base")(lambda self: None)


def test_stock_skills_are_tagged_as_their_policies_say() -> None:
    classes = (Drive, FollowPerson, LookOut, Observe, Patrol)
    for info in (spec.info("robot1/") for cls in classes for spec in skills_of(cls).values()):
        assert info.tags == tuple(sorted(info.tags))
        assert ("motion" in info.tags) is info.motion is ("safe" not in info.tags), info.name
