"""The offline model's grammar: turns an operator's input into calls of the skills that are offered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dimos_streams.common.readable.comparable_text import in_small_letters


@dataclass(frozen=True, slots=True)
class CommandStep:
    """One thing to do. ``skill`` is a name without namespace; a ``cleanup`` is done whatever became of the others."""

    skill: str
    arguments: Mapping[str, Any]
    robot: str = ""
    cleanup: bool = False


@dataclass(frozen=True, slots=True)
class Misunderstood:
    """An input that is not a command."""

    input: str


class AmbiguousRobotError(Exception):
    """Raised if several robots offer the skill and none was addressed."""

    def __init__(self, skill: str, names: Iterable[str]) -> None:
        super().__init__(f"which one do you mean: {', '.join(sorted(names))}? Say for instance 'robot1: stop'.")
        self.skill = skill


COMMANDS = (
    ("follow_person", "follow the person in red"),
    (
        "look_out_for",
        "look out for a person in a red shirt [or a person in green] [and follow them] [for 30 seconds]",
    ),
    ("patrol", "patrol [2 rounds]"),
    ("stop_following", "stop following"),
    ("stop_patrol", "stop the patrol"),
    ("stop_looking_out", "stop looking"),
    ("go_to", "go to 2 1"),
    ("move", "move 1.5"),
    ("turn", "turn [left] 90"),
    ("observe", "what do you see"),
    ("stop", "stop"),
)
"""The skills, and examples of how they are asked for."""

_NUMBER = r"([-+]?\d+(?:\.\d+)?)"
_ANGLE = r"(?:by )?(?P<angle>[-+]?\d+(?:\.\d+)?)(?: ?°| deg(?:rees?)?)?"
"""An angle in degrees, to the left where nobody says to which side."""
_PRONOUN = r"(?:them|him|her|it)"
_THEM = rf"(?:{_PRONOUN}|that person|the person)"
_WORDS = {
    "half a": 0.5, "half an": 0.5, "a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0,
    "five": 5.0, "six": 6.0, "seven": 7.0, "eight": 8.0, "nine": 9.0, "ten": 10.0, "eleven": 11.0, "twelve": 12.0,
    "fifteen": 15.0, "twenty": 20.0, "thirty": 30.0, "forty": 40.0, "forty-five": 45.0, "fifty": 50.0, "sixty": 60.0,
    "ninety": 90.0,
}  # fmt: skip
"""The words for numbers with which people write durations."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_AMOUNT = rf"\d+(?:\.\d+)?|(?:{'|'.join(_WORDS)})\b"
_SPAN = rf"\s+for\s+(?P<{{0}}amount>{_AMOUNT})\s*(?P<{{0}}unit>s|sec|seconds?|min|minutes?|h|hours?)"
_DURATION = rf"(?:{_SPAN.format('')})?"
_THEN_DURATION = rf"(?:{_SPAN.format('then_')})?"
_VERB = r"(?:move|drive|turn|go|follow|patrol|stop|halt|look|watch|what|observe)\b"
_END = rf"(?:\s+for\s+(?:{_AMOUNT})\s*\w+)?\s*(?:$|[,;.]|\band\b|\bthen\b)"
_SEPARATORS = re.compile(r"\s*(?:[,;.]|\band\b|\bthen\b)(?:\s*(?:,|\band\b|\bthen\b))*+", re.I)
_COMMAND = re.compile(rf"\s*(?={_VERB}(?!\s+{_THEM}{_END}))", re.I)
_ARTICLE = re.compile(r"^(?:the|a|an|any|some)\s+", re.I)
_OR = re.compile(
    r"\s*(?:,\s*or|,|\bor)\s+(?=(?:a|an|the|any|some|someone|somebody|person|people|man|woman|child)\b)", re.I
)
"""The separator between two descriptions; "a person in red or green" is one."""
_ADDRESS = re.compile(r"^(?P<robot>\w+)\s*[:,]\s*(?P<rest>.+)$")
_LONGEST = 2000
"""The longest command, in characters: to look through 40,000 may take 20 s, in which the agent hears nobody."""

Builder = Callable[[re.Match[str]], tuple[CommandStep, ...]]


def parse(text: str, robots: Iterable[str] = ()) -> list[CommandStep | Misunderstood]:
    """The steps that the input asks for, in order. ``robots`` are names that may come first: "robot1: stop"."""
    input = " ".join(text.split()).strip(" .!?")
    robot = ""
    addressed = _ADDRESS.match(input)
    if addressed and addressed["robot"].lower() in {name.lower() for name in robots}:
        robot, input = addressed["robot"].lower(), addressed["rest"]
    steps: list[CommandStep | Misunderstood] = []
    for part in _parts(input):
        found = _one(part)
        steps += (
            [CommandStep(s.skill, s.arguments, robot, s.cleanup) for s in found] if found else [Misunderstood(part)]
        )
    return steps


def _parts(text: str) -> Iterator[str]:
    """The parts of a text, cut at separators before a command. Each run of separators is looked at once: from each of
    thousands of commas anew would take seconds, in which the agent hears nobody."""
    begin = 0
    for separators in _SEPARATORS.finditer(text):
        if command := _COMMAND.match(text, separators.end()):
            yield text[begin : separators.start()]
            begin = command.end()
    yield text[begin:]


def resolve(skill: str, robot: str, offered: Iterable[str]) -> str | None:
    """The offered name of a skill, its namespace included, or None if there is none.

    Raises ``AmbiguousRobotError``.
    """
    names = [name for name in offered if name == skill or name.endswith(f"_{skill}")]
    if robot:
        return next((name for name in names if name.lower() == f"{robot}_{skill}"), None)
    if skill in names:
        return skill
    if len(names) > 1:
        raise AmbiguousRobotError(skill, names)
    return names[0] if names else None


def robots_of(offered: Iterable[str]) -> set[str]:
    """The namespaces that occur in skills' names."""
    skills = tuple(f"_{skill}" for skill, _ in COMMANDS)
    return {name[: -len(end)] for name in offered for end in skills if name.endswith(end)}


def _one(input: str) -> tuple[CommandStep, ...]:
    if len(input) > _LONGEST:
        return ()
    input = re.sub(r"^(?:please|now)\s+", "", input, flags=re.I).strip()
    for pattern, build in _GRAMMAR:
        match = pattern.fullmatch(input)
        if match:
            return build(match)
    return ()


def _stop_all(_: re.Match[str]) -> tuple[CommandStep, ...]:
    """The step of a stop at the end of other commands; a stop alone reaches no model."""
    return (CommandStep("cancel_call", {"call_id": "all", "reason": "the operator said stop"}, cleanup=True),)


def _look_out(match: re.Match[str]) -> tuple[CommandStep, ...]:
    descriptions = [_ARTICLE.sub("", part.strip()) for part in _OR.split(match["what"])]
    arguments: dict[str, Any] = {"descriptions": descriptions, **_timeout(match)}
    if match["then"]:
        following = {"description": "$label", **_timeout(match, "then_")}
        arguments["then"] = {"skill": "follow_person", "arguments": following}
    return (CommandStep("look_out_for", arguments),)


def _follow(match: re.Match[str]) -> tuple[CommandStep, ...]:
    if re.fullmatch(_PRONOUN, match["whom"], re.I):
        return ()
    return (CommandStep("follow_person", {"description": _ARTICLE.sub("", match["whom"]), **_timeout(match)}),)


def _timeout(match: re.Match[str], of: str = "") -> dict[str, float]:
    amount, unit = match[f"{of}amount"], match[f"{of}unit"]
    if not amount:
        return {}
    number = _WORDS.get(in_small_letters(amount))
    return {"timeout_s": (float(amount) if number is None else number) * _UNITS[in_small_letters(unit)[0]]}


def _move(match: re.Match[str]) -> tuple[CommandStep, ...]:
    back = in_small_letters(match["way"] or "").startswith("back")
    return (CommandStep("move", {"distance_m": float(match[2] or 1.0) * (-1.0 if back else 1.0)}),)


def _turn(match: re.Match[str]) -> tuple[CommandStep, ...]:
    way = in_small_letters(match["way"] or "left")
    angle = float(match["angle"] or (180.0 if way == "around" else 90.0))
    return (CommandStep("turn", {"angle_deg": -angle if way == "right" else angle}),)


def _patrol(match: re.Match[str]) -> tuple[CommandStep, ...]:
    return (CommandStep("patrol", {"rounds": int(match["rounds"])} if match["rounds"] else {}),)


def _go_to(match: re.Match[str]) -> tuple[CommandStep, ...]:
    return (CommandStep("go_to", {"x": float(match[1]), "y": float(match[2])}),)


def _plain(skill: str) -> Builder:
    return lambda _: (CommandStep(skill, {}),)


_GRAMMAR: tuple[tuple[re.Pattern[str], Builder], ...] = tuple(
    (re.compile(pattern, re.I), build)
    for pattern, build in (
        (r"stop following(?: .*)?", _plain("stop_following")),
        (r"stop (?:the |your )?patrol(?:ling)?", _plain("stop_patrol")),
        (r"stop (?:looking|watching|searching)(?: .*)?", _plain("stop_looking_out")),
        (r"(?:stop|halt|freeze|cancel)(?: (?:everything|all|now|moving|the robot))*", _stop_all),
        (
            rf"(?:look out|watch out|watch|look|search|keep an eye out) for (?P<what>.+?){_DURATION}"
            rf"(?P<then>,?\s+(?:(?:and|then)\s+)*follow\s+{_THEM}{_THEN_DURATION})?",
            _look_out,
        ),
        (rf"follow (?P<whom>.+?){_DURATION}", _follow),
        (
            rf"(?:move|drive|go)(?: (?P<way>forwards?|ahead|backwards?|back))?(?: (?:by )?{_NUMBER}"
            r"(?: ?m| met(?:er|re)s?)?)?",
            _move,
        ),
        (
            r"(?:go on )?(?:a )?patrol(?:ling)?(?: the room)?(?:(?: for)? (?P<rounds>\d{1,4}) (?:rounds?|times))?",
            _patrol,
        ),
        (rf"turn (?P<way>left|right|around)(?: {_ANGLE})?", _turn),
        (rf"turn {_ANGLE}(?: (?:to the )?(?P<way>left|right))?", _turn),
        (rf"(?:go|drive|move) to \(?(?:x ?= ?)?{_NUMBER}[, ]\s*(?:y ?= ?)?{_NUMBER}\)?", _go_to),
        (r"(?:what (?:do|can) you see|look around|observe|describe what you see)", _plain("observe")),
    )
)
