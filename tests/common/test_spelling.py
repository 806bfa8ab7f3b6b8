"""Which names are others, misspelt, and which are others on purpose."""

from __future__ import annotations

import pytest

from dimos_streams.common.readable.spelling import misspelt


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("skill_vell", "skill_vel"),
        ("skil_vell", "skill_vel"),
        ("skillvel", "skill_vel"),
        ("/robot1/skill_vle", "/robot1/skill_vel"),
        ("bse", "base"),
        ("bsae", "base"),
        ("basee", "base"),
        ("bade", "base"),
    ],
)
def test_a_slip_in_a_word_misspells_it(word: str, name: str) -> None:
    assert misspelt(word, [name, "quite_another"]) == [name]
    assert misspelt(name, [word]) == [word]


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("base", "base"),
        ("arm1", "arm2"),
        ("arm", "arm2"),
        ("/robot1/odom", "/robot2/odom"),
        ("arm_l", "arm_r"),
        ("left_arm", "right_arm"),
        ("front_image", "rear_image"),
        ("camera", "camera_rear"),
        ("arm", "art"),
        ("hand", "head"),
        ("cmd_vel", "skill_vel"),
        ("x", "xy"),
    ],
)
def test_names_that_differ_otherwise_are_others(word: str, name: str) -> None:
    assert misspelt(word, [name]) == misspelt(name, [word]) == []
