"""Learns from what servers refuse: what a server is not sent again, and how a refused request is made once more."""

from __future__ import annotations

import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dimos_streams.agent.models.chat_request import SHORT_ID, ChatStyle
from dimos_streams.agent.models.failures import REFUSALS, SPENT, is_too_long

if TYPE_CHECKING:
    from openai import APIStatusError

_logger = logging.getLogger(__name__)

_UNCLEAR = frozenset({400, 422})
"""The statuses with which a server refuses a request for its form, whatever it says."""
_NO_FORM = frozenset({"content_filter", "invalid_api_key", "model_not_found", *SPENT})
_VAIN_TRIALS = 3


Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """The way in which a server is asked."""

    style: ChatStyle
    usage: bool = True
    """True if it is asked for its usage."""
    temperature: bool = True
    tokens_field: str = "max_tokens"


@dataclass(frozen=True, slots=True)
class _Lesson:
    """One thing that servers refuse."""

    about: re.Pattern[str]
    """The words by which a refusal is known to be about it."""
    is_in: Callable[[Body], bool]
    """Tells whether a request has it."""
    without: Callable[[Habits], Habits]
    summary: str
    """The difference of requests from then on, for people; it is also the lesson's key in what was learnt before."""
    tried: bool = True
    """True if it is left out on trial where a server does not say what it refuses."""


def _styled(**changes: Any) -> Callable[[Habits], Habits]:
    return lambda habits: replace(habits, style=replace(habits.style, **changes))


def _messages(body: Body, role: str) -> Iterator[Mapping[str, Any]]:
    return (message for message in body["messages"] if message["role"] == role)


def _calls(body: Body) -> Iterator[Mapping[str, Any]]:
    return (call for message in _messages(body, "assistant") for call in message.get("tool_calls", ()))


def _follows(body: Body, before: str, after: str) -> bool:
    roles = [message["role"] for message in body["messages"]]
    return (before, after) in itertools.pairwise(roles)


def _has_images(body: Body) -> bool:
    contents = (message["content"] for message in _messages(body, "user"))
    return any(part["type"] == "image_url" for content in contents if isinstance(content, list) for part in content)


_LESSONS = (
    _Lesson(
        re.compile(r"stream_options|include_usage"),
        lambda body: "stream_options" in body,
        lambda habits: replace(habits, usage=False),
        "usage is not asked for",
    ),
    _Lesson(
        re.compile(r"max_completion_tokens"),
        lambda body: "max_tokens" in body,
        lambda habits: replace(habits, tokens_field="max_completion_tokens"),
        "max_completion_tokens is sent instead of max_tokens",
        tried=False,
    ),
    _Lesson(
        re.compile(r"\btemperature\b", re.IGNORECASE),
        lambda body: "temperature" in body,
        lambda habits: replace(habits, temperature=False),
        "no temperature is sent",
        tried=False,
    ),
    _Lesson(
        re.compile(r"after role ['\"]?tool\b", re.IGNORECASE),
        lambda body: _follows(body, "tool", "user"),
        _styled(user_after_tool=False),
        "an answer is put between results and users",
    ),
    _Lesson(
        re.compile(r"\balternat(?:e|es|ing|ion)\b", re.IGNORECASE),
        lambda body: _follows(body, "user", "user"),
        _styled(alternate=True),
        "neighbouring messages of users are joined",
    ),
    _Lesson(
        re.compile(r"\balternat(?:e|es|ing|ion)\b", re.IGNORECASE),
        lambda body: _follows(body, "tool", "user"),
        _styled(user_after_tool=False),
        "an answer is put between results and users",
        tried=False,
    ),
    _Lesson(
        re.compile(r"\bids?\b.*(a-z|alphanumeric|length|characters)|tool_call_id", re.IGNORECASE),
        lambda body: any(not SHORT_ID.fullmatch(call["id"]) for call in _calls(body)),
        _styled(short_ids=True),
        "ids of calls are nine letters and digits",
    ),
    _Lesson(
        re.compile(r"single tool|one tool|parallel|multiple tool|several tool", re.IGNORECASE),
        lambda body: any(len(message.get("tool_calls", ())) > 1 for message in _messages(body, "assistant")),
        _styled(parallel_calls=False),
        "each call of an answer is sent as an answer of its own",
    ),
    _Lesson(
        re.compile(r"content\b.*\b(null|none|string|required|missing)|\b(null|none)\b.*content", re.IGNORECASE),
        lambda body: any(message["content"] is None for message in _messages(body, "assistant")),
        _styled(null_content=False),
        "an answer without text has an empty text",
    ),
    _Lesson(
        re.compile(r"extra_content|extra (inputs|fields)|extra_forbidden|additional propert|unknown field", re.I),
        lambda body: any("extra_content" in call for call in _calls(body)),
        _styled(signatures=False),
        "signatures of calls are not sent back",
    ),
    _Lesson(
        re.compile(r"system (role|message|prompt|instruction)|role.{0,12}\bsystem\b", re.IGNORECASE),
        lambda body: any(_messages(body, "system")),
        _styled(system=False),
        "standing orders are sent as a user's message",
    ),
    _Lesson(
        re.compile(r"\b(image|images|image_url|vision|mmproj)\b|multi-?modal", re.IGNORECASE),
        _has_images,
        _styled(images=False),
        "images are not sent",
    ),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to ask that may help."""

    lesson: _Lesson
    habits: Habits

    @property
    def summary(self) -> str:
        """The difference from other requests, for people."""
        return self.lesson.summary


class Manners:
    """Learns from a server's refusals how it wants to be asked.

    If a refusal says what it is about, that is left out from then on. If it doesn't, those things in the request that
    servers are known to refuse are left out on trial, one after the other, and stay out if that helps; what has not
    helped three times is not tried again. Images that a blueprint insists on are always sent.
    """

    def __init__(
        self,
        *,
        vision: bool | str,
        learnt: Iterable[str] = (),
        on_learnt: Callable[[str], None] = lambda summary: None,
    ) -> None:
        """``learnt`` is what ``on_learnt`` got in an earlier process; anything that is no longer a lesson is
        ignored."""
        self.habits = Habits(style=ChatStyle(images=vision is not False))
        self._lessons = [lesson for lesson in _LESSONS if vision == "auto" or lesson.is_in is not _has_images]
        self._vain: Counter[str] = Counter()
        self._on_learnt = on_learnt
        known = frozenset(learnt)
        for lesson in self._lessons:
            if lesson.summary in known:
                self.habits = lesson.without(self.habits)

    def refused(self, status: int, text: str, body: Body) -> str:
        """Learn from a refusal. Return how requests differ from now on; empty if it teaches nothing."""
        if status in REFUSALS:
            for lesson in self._lessons:
                if lesson.about.search(text) and lesson.is_in(body):
                    self.habits = lesson.without(self.habits)
                    self._on_learnt(lesson.summary)
                    return lesson.summary
        return ""

    def trials(self, status: int, code: object, body: Body) -> Iterator[Trial]:
        """Yield one thing after the other that is left out on trial; ask again with each, until the request is taken.
        Only then is it ``helped`` that changes the habits."""
        if status not in _UNCLEAR or code in _NO_FORM:
            return
        for lesson in self._lessons:
            if lesson.tried and self._vain[lesson.summary] < _VAIN_TRIALS and lesson.is_in(body):
                yield Trial(lesson, lesson.without(self.habits))
                self._vain[lesson.summary] += 1

    def helped(self, trial: Trial) -> None:
        """Note that the request was taken: what was left out on trial stays out."""
        self.habits = trial.lesson.without(self.habits)
        self._on_learnt(trial.summary)


class Asking:
    """One request on its way past a server's refusals: after each it is made in another way, as long as that may
    help."""

    def __init__(self, manners: Manners, server: str) -> None:
        """``server`` names it in the log."""
        self._manners = manners
        self._server = server
        self._learnt: list[str] = []
        self._unclear: APIStatusError | None = None
        """The refusal on which the present trials go back, or None while there are none."""
        self._trials: Iterator[Trial] = iter(())
        self._trial: Trial | None = None

    @property
    def habits(self) -> Habits:
        """The way in which it is made next."""
        return self._manners.habits if self._trial is None else self._trial.habits

    def refused(self, error: APIStatusError, said: str, body: Body) -> APIStatusError | None:
        """Return None if it is to be made again, else the refusal that counts."""
        status, code = error.status_code, error.code
        if is_too_long(status, code, said):
            return error
        if lesson := self._manners.refused(status, said, body):
            if lesson in self._learnt:
                return error
            self._learnt.append(lesson)
            _logger.warning("%s: %s from now on, because it refused: %s", self._server, lesson, said)
            self._unclear = self._trial = None
            return None
        if self._unclear is None:
            self._unclear, self._trials = error, self._manners.trials(status, code, body)
        is_same = status == self._unclear.status_code
        self._trial = next(self._trials, None) if is_same else None
        if self._trial is None:
            return self._unclear if is_same else error
        _logger.warning("%s refused: %s; it is tried whether it helps if %s", self._server, said, self._trial.summary)
        return None

    def taken(self) -> None:
        """Note that the server has taken it."""
        if self._trial is not None:
            self._manners.helped(self._trial)
