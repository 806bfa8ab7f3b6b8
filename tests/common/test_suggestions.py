"""What is suggested in the place of a name that there is not."""

from __future__ import annotations

import pytest

from dimos_streams.errors import suggest


@pytest.mark.parametrize(
    ("word", "choices", "nearest"),
    [
        ("welcme", ["welcome", "wave"], ["welcome"]),
        ("welcome", ["bob_welcome", "alice_welcome", "welcomes"], ["bob_welcome", "alice_welcome"]),
        ("valet", ["bob/valet2", "alice/valet"], ["alice/valet"]),
        ("/odom", ["/odom2", "/alice/odom"], ["/alice/odom"]),
        ("valet3", ["valet2", "valet1", "other"], ["valet1", "valet2"]),
        ("go", ["a/go", "b/go", "c/go", "d/go"], ["a/go", "b/go", "c/go"]),
        ("x", ["alice/x", "alice/x"], ["alice/x"]),
        ("", ["a/b", "c"], []),
        ("penguin", ["a/b", "c"], []),
        ("nofile.yaml", ["unwired.yaml", "nofiles.yaml"], ["nofiles.yaml"]),
        ("nofile.yaml", ["unwired.yaml"], []),
        ("nofile.yaml", ["unwired.yml"], []),
        ("shelvs.yaml", ["shelves.yaml", "wolves.yaml"], ["shelves.yaml"]),
        ("shelves.yml", ["shelves.yaml"], ["shelves.yaml"]),
        ("rover.yml", ["res.yaml", "over.yaml"], ["over.yaml"]),
        ("rover.yml", ["res.yaml"], []),
        ("paint", ["agent", "bridge"], []),
        ("width", ["depth"], []),
        ("/foo", ["/odom"], []),
        ("/robot1/foo", ["/robot1/odom"], []),
        ("/robot1/odm", ["/robot1/odom", "/robot1/map"], ["/robot1/odom"]),
        ("ttl", ["tll"], ["tll"]),
        ("rde", ["red", "green"], ["red"]),
        ("follow", ["follow_person", "drive"], ["follow_person"]),
        ("folow_*", ["follow_person", "drive"], ["follow_person"]),
        ("stf_msgs.Twist", ["std_msgs.Twist", "nav_msgs.Twist"], ["std_msgs.Twist"]),
    ],
)
def test_the_nearest_names_are_suggested_all_that_are_equally_near(
    word: str, choices: list[str], nearest: list[str]
) -> None:
    said = f"; did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""
    assert suggest(word, choices) == said


def test_what_is_far_too_long_for_any_name_is_compared_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def compare(*arguments: object) -> None:
        raise AssertionError("it takes a tenth of a second for each name")

    monkeypatch.setattr("difflib.SequenceMatcher", compare)
    assert suggest("follow_person" * 10_000, ["follow_person", "turn"]) == ""
