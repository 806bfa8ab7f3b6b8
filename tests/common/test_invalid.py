"""What pydantic finds wrong is said in words for people, by one piece of code."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError, field_validator

import dimos_streams
from dimos_streams.common.invalid import all_problems, first_problem, in_a_line


class Robot(BaseModel):
    """Has checks of its own."""

    name: str
    legs: int = 4

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not name:
            raise ValueError("a robot has a name, say 'rob'")
        assert name.islower(), "it is lower case, say 'rob'"
        return name


@pytest.mark.feature("F5")
def test_the_librarys_own_words_are_left_out() -> None:
    with pytest.raises(ValidationError) as empty:
        Robot.model_validate({"name": "", "legs": "many"})
    assert first_problem(empty.value, "it") == "name: a robot has a name, say 'rob'"
    problems = all_problems(empty.value, "it")
    assert problems["legs"].startswith("Input should be a valid integer")
    assert in_a_line(problems).startswith("name: a robot has a name, say 'rob'; legs: Input should be")
    with pytest.raises(ValidationError) as loud:
        Robot.model_validate({"name": "ROB"})
    assert first_problem(loud.value, "it").startswith("name: it is lower case, say 'rob'")
    with pytest.raises(ValidationError) as none:
        Robot.model_validate([])
    assert first_problem(none.value, "the file") == "the file: Input should be a valid dictionary", (
        "no class is named"
    )


def test_nobody_else_takes_them_apart() -> None:
    package = Path(dimos_streams.__file__).parent
    found = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if '["msg"]' in (text := path.read_text(encoding="utf-8")) or "['msg']" in text
    ]
    assert found == ["common/invalid.py"]
