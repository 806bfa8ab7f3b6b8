"""Errors, divided by who has to act on them."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_MAX_SUGGESTED = 3
_ALIKE = 0.66
"""How much of two names must be the same for one to be suggested in the place of the other."""
_ALIKE_FROM_THE_BEGINNING = 0.6
"""``_ALIKE`` for two names that begin alike: few mistype the first letters."""
_ENDINGS_OF_YAML = {"yaml", "yml"}
_MAX_LISTED = 12
"""The largest number of names that are listed though one is near."""
_OF_THE_DISK = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EPIPE))
"""Numbers of errors that a file of any other name would have, too: the disk is full, read-only or failing."""


class DimosStreamsError(Exception):
    """Base of every error that this package raises on purpose."""


class UserError(DimosStreamsError):
    """An error that a person can mend: a blueprint, a setting, an argument, a missing extra.

    The command line prints the text as one line and exits with 2.
    """


def cannot_write(what: str, error: OSError) -> DimosStreamsError:
    """Return the error that ``what`` can't be written: a ``UserError``, or another if the disk is the reason, since
    the same may succeed when that has room."""
    text = f"{what} can't be written: {error.strerror or error}"
    return DimosStreamsError(text) if is_of_the_disk(error) else UserError(text)


def is_of_the_disk(error: OSError) -> bool:
    """Return whether an error of writing comes from the disk (full, read-only, failing), and not from the file's name
    or place."""
    return error.errno in _OF_THE_DISK


class OutputError(DimosStreamsError):
    """Raised by a command whose standard output can't be written: a full disk, a terminal that was closed."""


class BusError(DimosStreamsError):
    """Raised when the machine's transport does not work (no multicast route, port taken)."""


class BusUrlError(UserError, BusError):
    """Raised for a URL that is not one of a bus."""


class MessageError(DimosStreamsError):
    """Raised for bytes from a bus that are not the message that their channel names."""

    def __init__(self, channel: str, type_name: str, why: str) -> None:
        self.channel = channel
        self.type_name = type_name
        self.why = why
        where = f" on {channel!r}" if channel else ""
        super().__init__(f"bad {type_name}{where}: {why}")


class SkillError(DimosStreamsError):
    """Raised when a skill could not do what was asked. The text reaches the caller word for word.

    ``result`` is what there is of a result nevertheless: it reaches the caller in the close, as the result of a
    completed call would.
    """

    def __init__(self, message: str = "", *, result: Any = None) -> None:
        self.result = result
        super().__init__(message)


class SkillArgumentError(SkillError):
    """Raised for arguments of a call that do not fit the skill.

    ``problems`` maps the path of each bad argument to what is wrong with it.
    """

    def __init__(self, skill: str, problems: dict[str, str]) -> None:
        self.skill = skill
        self.problems = problems
        details = "; ".join(f"{field}: {problem}" for field, problem in problems.items())
        super().__init__(f"skill {skill!r} cannot take these arguments: {details}")


class UnknownSkillError(SkillError):
    """Raised for a skill name that no module offers."""

    def __init__(self, skill: str, known: Iterable[str], absent: Iterable[str] = ()) -> None:
        """``absent`` are the machines of the run that are not there and may have the skill."""
        self.skill = skill
        names = sorted(known)
        near = suggest(skill, names)
        # A robot with an agent has dozens, among which the near ones would be lost.
        many = f"{len(names)} are offered" if near and len(names) > _MAX_LISTED else ""
        offered = many or f"offered: {', '.join(names) or 'none'}"
        missing = "".join(f"; machine {machine!r}, which may have it, is not there" for machine in absent)
        super().__init__(f"no skill is called {skill!r}{near} ({offered}){missing}")


class BadRequestError(UserError, SkillError):
    """Raised for a request that a bridge can't read: an invalid name or text, or a field that it does not take.

    ``problems`` maps the path of each such part to what is wrong with it.
    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        super().__init__("; ".join(f"{path}: {problem}" for path, problem in problems.items()))


class UnknownAgentError(UserError, SkillError):
    """Raised for a name that no agent has, or that several agents have."""


class UnknownRobotError(UserError, SkillError):
    """Raised for a name that no robot has."""

    def __init__(self, robot: str, known: Iterable[str], *, listed: str = "") -> None:
        """``listed`` says of the known robots where each is, if there are several runs."""
        self.robot = robot
        self.known = tuple(sorted(known))
        there = listed or ", ".join(self.known) or "none has a name; without one, every robot is meant"
        super().__init__(f"no robot is called {robot!r}{suggest(robot, self.known)} (robots: {there})")


class RobotNeededError(UserError, SkillError):
    """Raised at a fleet's hub for a request that names no robot and could be meant for several."""


class UnknownCallError(UserError, SkillError):
    """Raised for an id of which no call is remembered."""

    def __init__(self, call_id: str, text: str = "") -> None:
        """``text`` takes the place of the usual text, where more can be said of the call."""
        self.call_id = call_id
        super().__init__(text or f"no call has the id {call_id!r}; ended calls are forgotten after a while")


class SettingsError(UserError, SkillError):
    """Raised for settings that can't be changed in the given way while their modules run.

    ``problems`` maps each setting to what is wrong with it; what concerns several stands under an empty name.
    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        text = "; ".join(f"{name}: {text}" if name else text for name, text in problems.items())
        super().__init__(text, result=self.problems)


class CallRejectedError(SkillError):
    """Raised when a call was refused before it began: a resource is taken, or a duplicate is not allowed.

    ``holder`` is the id of the call in the way, empty if none is, and ``resource`` is what that call holds, empty
    where the call is in the way as a duplicate.
    """

    def __init__(self, message: str, *, holder: str = "", resource: str = "") -> None:
        self.holder = holder
        self.resource = resource
        super().__init__(message)


class KeyUsedError(UserError, CallRejectedError):
    """Raised for an idempotency key with which its caller has begun another call: ``call_id`` of ``skill``, as it is
    now."""

    def __init__(self, message: str, *, call_id: str, skill: str, state: str) -> None:
        """``state`` is ``requested``, ``open`` or ``closed``."""
        self.call_id = call_id
        self.skill = skill
        self.state = state
        super().__init__(message)


class ConflictError(SkillError):
    """Raised when what somebody decides on or changes is not as they saw it. ``result`` is what holds."""


class SkillRunError(SkillError):
    """Raised when a skill that another one ran did not complete. The text is that of its close.

    If the skill that ran it lets this pass, it fails with the same text; what there is of the child's result, in
    ``child_result``, does not become its own.
    """

    def __init__(self, message: str, *, skill: str, outcome: str, call_id: str, child_result: Any = None) -> None:
        """``outcome`` is one of a call's outcomes: failed, rejected, cancelled, timed_out, lost."""
        self.skill = skill
        self.outcome = outcome
        self.call_id = call_id
        self.child_result = child_result
        super().__init__(message)


class SkillUnavailableError(SkillError):
    """Raised when the module that offers the skill does not answer at the moment."""


class NoAnswerError(SkillUnavailableError):
    """Raised when a bridge did not answer a request. ``may_have_arrived`` is False if it certainly has not got it."""

    def __init__(self, message: str, *, may_have_arrived: bool) -> None:
        self.may_have_arrived = may_have_arrived
        super().__init__(message)


class CallInDoubtError(SkillUnavailableError):
    """Raised when nobody could say whether a call has begun, or an order or change was carried out."""


class NoRunError(DimosStreamsError):
    """Raised when there is no run to act on. Once one lives, the same may work."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; `dimos-streams run BLUEPRINT` starts one")


class StreamClosedError(DimosStreamsError):
    """Raised when something is sent on a tool stream that has ended or has not begun."""


class ModuleFailedError(DimosStreamsError):
    """Raised when a module could not start, or ended by an exception."""


HOW_TO_END = "let asyncio.CancelledError pass, as `except Exception` does, and bound what blocks"
"""The remedy for code that goes on after it was cancelled."""


class UnendingError(DimosStreamsError):
    """Raised at the end of a run that tasks or threads have outlived, although they were to end with it."""

    def __init__(self, left: Sequence[str], bound_s: float) -> None:
        """``left`` has a line for each of them."""
        lines = "".join(f"\n  {line}" for line in left)
        super().__init__(f"still at work {bound_s:g} s after it was cancelled ({HOW_TO_END}):{lines}")


def suggest(word: str, choices: Iterable[str], *, before: str = "") -> str:
    """``"; did you mean 'x'?"`` for the nearest of ``choices``, or an empty string. Of equally near ones it has three
    at most; ``before`` is shown before each.

    The nearest are those that are the word behind a prefix or in a namespace, whatever their length.
    """
    names = list(dict.fromkeys(choices))
    behind = tuple(f"{mark}{word.lstrip('/')}" for mark in "_/.") if word else ()
    near = [name for name in names if name.endswith(behind)] or _most_similar(word, names)
    return did_you_mean([f"{before}{name}" for name in near])


def did_you_mean(names: Sequence[str]) -> str:
    """``"; did you mean 'x' or 'y'?"`` for the first of names that may be meant, or an empty string for none."""
    shown = " or ".join(map(repr, names[:_MAX_SUGGESTED]))
    return f"; did you mean {shown}?" if names else ""


def _most_similar(word: str, names: Iterable[str]) -> list[str]:
    likeness = {name: ratio for name in names if (ratio := _likeness(word, name))}
    best = max(likeness.values(), default=0.0)
    return sorted(name for name, ratio in likeness.items() if ratio == best)


def _likeness(word: str, name: str) -> float:
    """Return how much of a word and a name is the same, from 0 to 1; 0 if one can't be meant by the other. A folder
    and an ending that both have, as two files of one kind do, make them no more alike."""
    word, name = _without_common_parts(word, name)
    enough = _ALIKE_FROM_THE_BEGINNING if word[:2] == name[:2] else _ALIKE
    if 2 * min(len(word), len(name)) < enough * (len(word) + len(name)):  # a stranger's word may have 100,000 letters
        return 0.0
    matcher = difflib.SequenceMatcher(None, name, word)
    if matcher.quick_ratio() < enough:  # which takes less time than the ratio
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= enough else 0.0


def _without_common_parts(one: str, other: str) -> tuple[str, str]:
    """Two names without the folder that both are in, and without the ending behind a dot that both have."""
    (folder, slash, last), (other_folder, _, other_last) = one.rpartition("/"), other.rpartition("/")
    if slash and folder == other_folder:
        one, other = last, other_last
    (stem, dot, ending), (other_stem, _, other_ending) = one.rpartition("."), other.rpartition(".")
    same = ending == other_ending or {ending, other_ending} == _ENDINGS_OF_YAML
    return (stem, other_stem) if dot and same else (one, other)
