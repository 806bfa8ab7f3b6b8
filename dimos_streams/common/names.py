"""Names: the one rule for those of skills, modules and callers, which anybody on the bus may choose, and namespaces,
which stand before the last slash of one.

A name is shown to people and models, in lines that are not its own: with blanks, line ends or look-alikes of letters
it could pass for another one, or for a line of ours.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

from dimos_streams.common.readable.shortening import shortened
from dimos_streams.common.readable.unseen import is_printable

MAX_NAME = 200
"""Maximum length of the name of a module, a caller or a skill, and of a call id, in characters."""
_SIGNS = "._-/:@+"
NAME_RULE = f"valid: 1 to {MAX_NAME} letters of ASCII, digits and {_SIGNS}"
SKILL_NAME_RULE = f"valid: 1 to {MAX_NAME} letters of ASCII, digits, _ and -"
_READABLE_RULE = f"valid: at most {MAX_NAME} printable characters"
KEY_RULE = f"valid: 1 to {MAX_NAME} printable characters"
PARAMETER_RULE = f"valid: 1 to {MAX_NAME} printable characters without blanks"

MODULE_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
"""The form of a module's name inside its namespace: small letters, digits and single underscores, beginning with a
letter."""

MAX_TOOL_NAME = 64
"""Maximum length of a tool's name at models' servers, in characters. A skill's own name keeps to it; with a namespace
before it, it may be longer."""
_TOOL_BEGINNING = 16
"""Number of characters that are kept of the beginning of a skill's name that is longer."""
_TOOL_DIGITS = 16
"""Number of hexadecimal digits behind them: enough that nobody finds another skill with the same digits."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SHOWN = 60
"""Maximum length of what is no name in an error, in characters."""
_HASH = 6
"""Number of hexadecimal digits that tell apart texts of which one name is made."""
_OF_NAMES = f"A-Za-z0-9{re.escape(_SIGNS)}"
_SHORTENED = re.compile(f".{{{_TOOL_BEGINNING}}}-[0-9a-f]{{{_TOOL_DIGITS}}}-.*")
_NAME = re.compile(f"[{_OF_NAMES}]{{1,{MAX_NAME}}}")
NAME_PATTERN = f"^[{_OF_NAMES}]*$"
"""The letters that a name may have, as a pattern for JSON schemas."""
_NOT_OF_NAMES = re.compile(f"[^{_OF_NAMES}]+")
_SKILL = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME}}}")


def is_name(text: str) -> bool:
    """Return whether a text may name a module, a caller or a skill that is asked for."""
    return _NAME.fullmatch(text) is not None


def taken_for(name: str) -> str:
    """The name that people would take a name for: in small letters, and without signs at its ends."""
    return name.lower().strip(_SIGNS)


def is_key(text: str) -> bool:
    """Return whether a text may be an idempotency key. Halves of characters, which no text can have, are all read as
    one character, so that keys with them would be one."""
    return 0 < len(text) <= MAX_NAME and is_printable(text) and _REPLACEMENT not in text


def fault_of_names(names: Iterable[str]) -> str:
    """Return which of the names in a message can't be shown in one line, with the rule; empty if all can. The empty
    one can, and names nobody.

    What was said in a name may be read, from a bus or a recording, whoever said it: nobody is admitted by it.
    """
    bad = next((name for name in names if not (len(name) <= MAX_NAME and is_printable(name))), None)
    return "" if bad is None else f"a name in it is {shortened(repr(bad), _SHOWN)}; {_READABLE_RULE}"


def as_name(text: str, longest: int = MAX_NAME) -> str:
    """Return a text that is no name as one: with "-" for what no name has in it, and digits that another text gives
    only if somebody means it to. A name stays as it is."""
    if is_name(text) and len(text) <= longest:
        return text
    digits = _digits(text)
    kept = _NOT_OF_NAMES.sub("-", text)[: longest - _HASH - 1].strip("-")
    return f"{kept}-{digits}" if kept else digits


def _digits(text: str, count: int = _HASH) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:count]


def is_skill_name(text: str) -> bool:
    """Return whether a text may be the public name of a skill: a namespace before it is part of it, ``a_go_to``."""
    return _SKILL.fullmatch(text) is not None


def tool_name(skill: str) -> str:
    """The name by which models are offered a skill: its own, or a shorter one with digits in the place of its middle:
    it begins as the robot's name and ends as the skill's. Servers refuse all that is asked of them for one tool with
    a longer name.

    A skill that is called like such a name gets another one, too: else a robot could have the calls of another one's
    tool by a skill that it calls so."""
    if len(skill) <= MAX_TOOL_NAME and not is_like_shortened(skill):
        return skill
    beginning = f"{skill[:_TOOL_BEGINNING]}-{_digits(skill, _TOOL_DIGITS)}-"
    return beginning + skill[len(beginning) - MAX_TOOL_NAME :]


def skill_meant(name: str, known: Collection[str]) -> str | None:
    """Return which of the known skills is meant by a name, whoever says it: the one that models are offered by that
    name, else the one whose own it is; None if there is none."""
    if is_like_shortened(name):
        offered = next((skill for skill in known if tool_name(skill) == name), None)
        if offered is not None:
            return offered
    return name if name in known else None


def tool_meant(name: str) -> str:
    """The name of the tool that is meant by a skill's name, or by a tool's, whether such a skill is known or not."""
    return name if is_like_shortened(name) else tool_name(name)


def is_like_shortened(name: str) -> bool:
    """Return whether a name has the form of those by which models are offered skills of longer names."""
    return len(name) == MAX_TOOL_NAME and _SHORTENED.fullmatch(name) is not None


def is_parameter(text: str) -> bool:
    """Return whether a text may name a parameter of a skill. It may be any identifier of Python's, and more."""
    return 0 < len(text) <= MAX_NAME and is_printable(text) and " " not in text


def namespace_of(module: str) -> str:
    """The namespace of a module: ``"robots/a"`` of ``"robots/a/follow"``; empty for a module in none."""
    return module.rpartition("/")[0]


def robot_of(module: str) -> str:
    """The outermost namespace of a module, which is its robot: ``"robots"`` of ``"robots/a/follow"``."""
    return namespace_of(module).partition("/")[0]


def is_in(namespace: str, robot: str) -> bool:
    """Return whether a namespace is a robot's, or nested in it; all of them are in the robot ``""``."""
    return not robot or namespace == robot or namespace.startswith(f"{robot}/")


def fleet_name(skill: str, robot: str | None) -> str:
    """The name of a robot's skill among those of a fleet, ``"r1_turn"``; outside of a fleet its own."""
    return f"{robot}_{skill}" if robot else skill


def prefix_of(module: str) -> str:
    """Return the prefix of the names in a module's namespace: ``"robots/a/"``, or nothing."""
    namespace = namespace_of(module)
    return f"{namespace}/" if namespace else ""


def is_near(agent: str, module: str) -> bool:
    """Return whether a module is in an agent's namespace or in none: an agent does not command another one's
    robot."""
    return not namespace_of(module) or module.startswith(prefix_of(agent))


def namespace_of_topic(topic: str, namespaces: Iterable[str]) -> str:
    """The longest of some namespaces that a topic or a channel is in: ``"robot1"`` for ``"/robot1/odom"``.

    Empty if it is in none.
    """
    return max((name for name in namespaces if name and topic.startswith(f"/{name}/")), key=len, default="")
