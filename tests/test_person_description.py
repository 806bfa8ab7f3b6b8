"""Descriptions against labels."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dimos_streams.person_description import MATCH_THRESHOLD, match_score, parse

RED_BLUE = "person in a red shirt and blue trousers"
COLOURS = st.sampled_from(["red", "blue", "green", "yellow", "black", "white", "grey"])


@pytest.mark.parametrize(
    "description",
    [
        RED_BLUE,
        "person",
        "anyone",
        "person in red",
        "a person in a red shirt",
        "The man with the Red T-Shirt!",
        "someone wearing red",
        "the one in red",
        "red",
        "crimson top",
        "man in a red jacket",
        "woman in a dark red pullover",
        "someone in navy pants",
        "person wearing a red top and jeans",
        "tall person in red",
        "person in red near the blue table",
    ],
)
def test_matches(description: str) -> None:
    assert match_score(description, RED_BLUE) >= MATCH_THRESHOLD


@pytest.mark.parametrize(
    "description",
    [
        "",
        "!",
        "dog",
        "dog in a red shirt",
        "the man's dog",
        "red chair",
        "red trousers",
        "blue shirt",
        "person in blue",
        "the man with the green shirt",
        "person in a red shirt and green trousers",
        "person not in red",
        "someone without a red shirt",
        "person with a red backpack",
        "person in a hat",
        "a very tall thin bearded smiling person",
    ],
)
def test_does_not_match(description: str) -> None:
    assert match_score(description, RED_BLUE) < MATCH_THRESHOLD


@pytest.mark.parametrize(
    ("description", "label", "match"),
    [
        ("red shirt", "person in red", True),
        ("red trousers", "person in red", False),
        ("person in red", "person", False),
        ("the man", "woman in red", False),
        ("the man", "man in red", True),
        ("dog", "dog", True),
        ("a chair", "red chair", True),
        ("red chair", "blue chair", False),
        ("person not in red", "person not in red", True),
        ("người đàn ông", "người đàn ông", True),
        ("người đàn ông", RED_BLUE, False),
    ],
)
def test_other_labels(description: str, label: str, match: bool) -> None:
    assert (match_score(description, label) >= MATCH_THRESHOLD) is match


@pytest.mark.parametrize(
    "words", ["PERSON \u0130N A WH\u0130TE SH\u0130RT", "person \u0131n a wh\u0131te \u017fh\u0131rt"]
)
def test_what_somebody_wears_is_understood_in_letters_of_other_keyboards(words: str) -> None:
    """Words that are not known only cost, so that anybody would fit."""
    assert match_score(words, RED_BLUE) == match_score("person in a white shirt", RED_BLUE) < MATCH_THRESHOLD
    assert match_score(words, "person in a white shirt") == 1.0


def test_the_better_fit_scores_higher() -> None:
    scores = [match_score(description, RED_BLUE) for description in ("red shirt", "red coat", "red trousers")]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3


@pytest.mark.slow
@given(shirt=COLOURS, trousers=COLOURS, wanted=COLOURS)
def test_colours_decide_garment_by_garment(shirt: str, trousers: str, wanted: str) -> None:
    label = f"person in a {shirt} shirt and {trousers} trousers"
    assert (match_score(f"someone in a {wanted} shirt", label) >= MATCH_THRESHOLD) is (wanted == shirt)
    assert (match_score(f"{wanted} trousers", label) >= MATCH_THRESHOLD) is (wanted == trousers)
    assert (match_score(f"person in {wanted}", label) >= MATCH_THRESHOLD) is (wanted == shirt)


@pytest.mark.slow
@given(description=st.text(max_size=60), label=st.text(max_size=60))
def test_any_text_gives_a_score(description: str, label: str) -> None:
    assert 0.0 <= match_score(description, label) <= 1.0
    parse(description)


@pytest.mark.parametrize(
    ("description", "is_met"),
    [
        ("person in mauve", False),
        ("a person in a tuxedo", False),
        ("person in a mauve shirt", False),
        ("person in red and a tuxedo", False),
        ("person with an umbrella", False),
        ("person in a stripy red shirt", True),
        ("person in the kitchen", True),
        ("tall person wearing red at the window", True),
    ],
)
def test_unknown_clothes_decide_and_other_unknown_words_only_cost(description: str, is_met: bool) -> None:
    assert (match_score(description, RED_BLUE) >= MATCH_THRESHOLD) is is_met
    assert match_score(description, description.replace("person", "person there")) >= MATCH_THRESHOLD


@pytest.mark.slow
@given(words=st.lists(st.sampled_from(["tall", "old", "smiling", "bearded", "thin"]), max_size=4, unique=True))
def test_each_unknown_word_costs_something(words: list[str]) -> None:
    scores = [match_score(" ".join([*words[:n], "person in red"]), RED_BLUE) for n in range(len(words) + 1)]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


def test_long_labels_take_no_memory_for_good_and_no_time_by_their_square() -> None:
    tracemalloc.start()
    try:
        for number in range(20):
            match_score("person in red", f"person in a red shirt {number} " + "trousers " * 10_000)
            parse(f"{number} in " + "mauve " * 10_000)
        assert tracemalloc.get_traced_memory()[0] < 500_000
    finally:
        tracemalloc.stop()
