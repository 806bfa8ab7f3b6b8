"""What may be a name, and what is made of what may not."""

from __future__ import annotations

import pytest

from dimos_streams.common.names import MAX_NAME, as_name, fault_of_names, is_name


@pytest.mark.parametrize("name", ["", "agent ", "\uff41gent", "\u0430gent", "a\nb", "a" * (MAX_NAME + 1)])
def test_what_could_pass_for_another_name_is_none(name: str) -> None:
    assert not is_name(name)
    assert is_name(as_name(name))


def test_texts_that_are_no_names_become_different_ones_and_names_stay() -> None:
    texts = [
        "Visual Studio Code",
        "Visual-Studio-Code",
        "(my) client",
        "my client",
        "\u4eba",
        "\u0410\u043b\u0438",
        "client",
        "",
    ]
    made = [as_name(text) for text in texts]
    assert len(set(made)) == len(texts)
    assert made[1] == texts[1]
    assert made[0].startswith("Visual-Studio-Code-")
    assert len(as_name("a b" * MAX_NAME, 20)) <= 20
    assert as_name("a" * 30, 20) != as_name("a" * 31, 20)


@pytest.mark.parametrize(
    ("names", "is_fault"), [(["my script", "\u0430gent", ""], False), (["a\nb"], True), (["a" * 201], True)]
)
def test_names_that_were_said_are_read_if_they_fit_one_line(names: list[str], is_fault: bool) -> None:
    assert bool(fault_of_names(names)) is is_fault
