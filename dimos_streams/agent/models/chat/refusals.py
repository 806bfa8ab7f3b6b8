"""Learns from what servers refuse: what a server is not sent again, and how a refused request is made once more."""

from __future__ import annotations

import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dimos_streams.agent.models.chat.format import SIGNATURE_FIELDS, THOUGHT_FIELDS
from dimos_streams.agent.models.chat.plain_schemas import plain_parameters
from dimos_streams.agent.models.chat.request import SHORT_ID, ChatStyle
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
class Dialect:
    """The form that requests to one server have."""

    style: ChatStyle
    usage: bool = True
    """True if it is asked for its usage."""
    temperature: bool = True
    tokens_field: str = "max_tokens"
    plain_schemas: bool = False
    """True if schemas of tools are as Gemini takes them."""


@dataclass(frozen=True, slots=True)
class _Quirk:
    """One thing that some servers refuse in a request, although the protocol has it."""

    about: re.Pattern[str]
    """The words by which a refusal is known to be about it."""
    is_in: Callable[[Body], bool]
    """Tells whether a request has it."""
    avoid: Callable[[Dialect], Dialect]
    """Returns a dialect without it."""
    summary: str
    """The difference of requests from then on, for people; it is also its key in what was learnt before."""
    tried: bool = True
    """True if it is left out on trial where a server does not say what it refuses."""


def _styled(**changes: Any) -> Callable[[Dialect], Dialect]:
    return lambda dialect: replace(dialect, style=replace(dialect.style, **changes))


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


def _has_full_schemas(body: Body) -> bool:
    schemas = (tool["function"].get("parameters", {}) for tool in body.get("tools", ()))
    return any(schema != plain_parameters(schema) for schema in schemas)


def _is_signed(body: Body) -> bool:
    answers = any(field in message for message in _messages(body, "assistant") for field in THOUGHT_FIELDS)
    return answers or any(field in call for call in _calls(body) for field in SIGNATURE_FIELDS)


_QUIRKS = (
    _Quirk(
        re.compile(r"reasoning[_ ]content", re.IGNORECASE),
        lambda body: any("reasoning_content" not in message for message in _messages(body, "assistant")),
        _styled(thoughts=True),
        "what the model thought is sent back with its answers",
        tried=False,
    ),
    _Quirk(
        re.compile(r"stream_options|include_usage"),
        lambda body: "stream_options" in body,
        lambda dialect: replace(dialect, usage=False),
        "usage is not asked for",
    ),
    _Quirk(
        re.compile(r"max_completion_tokens"),
        lambda body: "max_tokens" in body,
        lambda dialect: replace(dialect, tokens_field="max_completion_tokens"),
        "max_completion_tokens is sent instead of max_tokens",
        tried=False,
    ),
    _Quirk(
        re.compile(r"\btemperature\b", re.IGNORECASE),
        lambda body: "temperature" in body,
        lambda dialect: replace(dialect, temperature=False),
        "no temperature is sent",
        tried=False,
    ),
    _Quirk(
        re.compile(r"after role ['\"]?tool\b", re.IGNORECASE),
        lambda body: _follows(body, "tool", "user"),
        _styled(user_after_tool=False),
        "an answer is put between results and users",
    ),
    _Quirk(
        re.compile(r"\balternat(?:e|es|ing|ion)\b", re.IGNORECASE),
        lambda body: _follows(body, "user", "user"),
        _styled(alternate=True),
        "neighbouring messages of users are joined",
    ),
    _Quirk(
        re.compile(r"\balternat(?:e|es|ing|ion)\b", re.IGNORECASE),
        lambda body: _follows(body, "tool", "user"),
        _styled(user_after_tool=False),
        "an answer is put between results and users",
        tried=False,
    ),
    _Quirk(
        re.compile(r"\bids?\b.*(a-z|alphanumeric|length|characters)|tool_call_id", re.IGNORECASE),
        lambda body: any(not SHORT_ID.fullmatch(call["id"]) for call in _calls(body)),
        _styled(short_ids=True),
        "ids of calls are nine letters and digits",
    ),
    _Quirk(
        re.compile(r"single tool|one tool|parallel|multiple tool|several tool", re.IGNORECASE),
        lambda body: any(len(message.get("tool_calls", ())) > 1 for message in _messages(body, "assistant")),
        _styled(parallel_calls=False),
        "each call of an answer is sent as an answer of its own",
    ),
    _Quirk(
        re.compile(r"content\b.*\b(null|none|string|required|missing)|\b(null|none)\b.*content", re.IGNORECASE),
        lambda body: any(message["content"] is None for message in _messages(body, "assistant")),
        _styled(null_content=False),
        "an answer without text has an empty text",
    ),
    _Quirk(
        re.compile(
            "|".join((*SIGNATURE_FIELDS, *THOUGHT_FIELDS))
            + r"|extra (inputs|fields)|extra_forbidden|additional propert|unknown field",
            re.IGNORECASE,
        ),
        _is_signed,
        _styled(signatures=False),
        "signatures of calls are not sent back",
    ),
    _Quirk(
        re.compile(r"system (role|message|prompt|instruction)|role.{0,12}\bsystem\b", re.IGNORECASE),
        lambda body: any(_messages(body, "system")),
        _styled(system=False),
        "standing orders are sent as a user's message",
    ),
    _Quirk(
        re.compile(r"\b(image|images|image_url|vision|mmproj)\b|multi-?modal", re.IGNORECASE),
        _has_images,
        _styled(images=False),
        "images are not sent",
    ),
    _Quirk(
        re.compile(r"function_?declaration|additionalProperties|exclusiveM|\b(one|any)_?of\b", re.IGNORECASE),
        _has_full_schemas,
        lambda dialect: replace(dialect, plain_schemas=True),
        "schemas of tools are sent in a plain form",
        tried=False,
    ),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to ask that may help."""

    quirk: _Quirk
    dialect: Dialect

    @property
    def summary(self) -> str:
        """The difference from other requests, for people."""
        return self.quirk.summary


class ServerQuirks:
    """Learns the quirks of a server from its refusals, and asks it in a dialect that avoids them.

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
        """``learnt`` is what ``on_learnt`` got in an earlier process; what is no quirk's summary is ignored."""
        self.dialect = Dialect(style=ChatStyle(images=vision is not False))
        self._candidates = [quirk for quirk in _QUIRKS if vision == "auto" or quirk.is_in is not _has_images]
        self._vain: Counter[str] = Counter()
        self._on_learnt = on_learnt
        found = frozenset(learnt)
        for quirk in self._candidates:
            if quirk.summary in found:
                self.dialect = quirk.avoid(self.dialect)

    def refused(self, status: int, text: str, body: Body) -> str:
        """Learn from a refusal. Return how requests differ from now on; empty if it teaches nothing."""
        if status in REFUSALS:
            for quirk in self._candidates:
                if quirk.about.search(text) and quirk.is_in(body):
                    self.dialect = quirk.avoid(self.dialect)
                    self._on_learnt(quirk.summary)
                    return quirk.summary
        return ""

    def trials(self, status: int, code: object, body: Body) -> Iterator[Trial]:
        """Yield one thing after the other that is left out on trial; ask again with each, until the request is taken.
        Only then is it ``helped`` that changes the dialect."""
        if status not in _UNCLEAR or code in _NO_FORM:
            return
        for quirk in self._candidates:
            if quirk.tried and self._vain[quirk.summary] < _VAIN_TRIALS and quirk.is_in(body):
                yield Trial(quirk, quirk.avoid(self.dialect))
                self._vain[quirk.summary] += 1

    def helped(self, trial: Trial) -> None:
        """Note that the request was taken: what was left out on trial stays out."""
        self.dialect = trial.quirk.avoid(self.dialect)
        self._on_learnt(trial.summary)


class RequestAttempts:
    """The attempts at one request: after each refusal it is made in another dialect, as long as that may help."""

    def __init__(self, quirks: ServerQuirks, server: str) -> None:
        """``server`` names it in the log."""
        self._quirks = quirks
        self._server = server
        self._learnt: list[str] = []
        self._unclear: APIStatusError | None = None
        """The refusal on which the present trials go back, or None while there are none."""
        self._trials: Iterator[Trial] = iter(())
        self._trial: Trial | None = None

    @property
    def dialect(self) -> Dialect:
        """The way in which it is made next."""
        return self._quirks.dialect if self._trial is None else self._trial.dialect

    def refused(self, error: APIStatusError, said: str, body: Body) -> APIStatusError | None:
        """Return None if it is to be made again, else the refusal that counts."""
        status, code = error.status_code, error.code
        if is_too_long(status, code, said):
            return error
        if change := self._quirks.refused(status, said, body):
            if change in self._learnt:
                return error
            self._learnt.append(change)
            _logger.warning("%s: %s from now on, because it refused: %s", self._server, change, said)
            self._unclear = self._trial = None
            return None
        if self._unclear is None:
            self._unclear, self._trials = error, self._quirks.trials(status, code, body)
        is_same = status == self._unclear.status_code
        self._trial = next(self._trials, None) if is_same else None
        if self._trial is None:
            return self._unclear if is_same else error
        _logger.warning("%s refused: %s; it is tried whether it helps if %s", self._server, said, self._trial.summary)
        return None

    def taken(self) -> None:
        """Note that the server has taken it."""
        if self._trial is not None:
            self._quirks.helped(self._trial)
