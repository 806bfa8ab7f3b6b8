"""The errors of a server of chat completions as those of a model: the server's words, and whether they may pass."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dimos_streams.agent.models.failures import is_too_long, may_pass, retry_after_s
from dimos_streams.agent.models.protocol import ContextLengthError, ModelError
from dimos_streams.common.secrets import redacted, redacted_data

if TYPE_CHECKING:
    from openai import APIError

SHOWN = 500
"""Maximum length of what an error shows of a server's words, in characters."""


class ServerErrors:
    """Makes the errors of one model at one server; each begins with ``name``, which names both."""

    def __init__(self, name: str) -> None:
        self._name = name

    def of_sdk(self, error: APIError) -> ModelError:
        """The error for one of the SDK: no connection, a refusal by HTTP, or an error among the answer's chunks."""
        from openai import APIConnectionError, APIStatusError

        from dimos_streams.agent.models.answer_body import MAX_ERROR

        if isinstance(error, APIConnectionError):
            return self.broken(error.__cause__ or error)
        if isinstance(error, APIStatusError):
            if is_too_long(error.status_code, error.code, said_by(error)):
                text = f"{self._name}: HTTP {error.status_code}: {said_by(error)}"
                return ContextLengthError(text, status=error.status_code)
            hint = " (base URLs mostly end in /v1)" if error.status_code == 404 else ""
            if len(error.response.content) >= MAX_ERROR:
                hint += f" ({MAX_ERROR} bytes of it were read)"
            return ModelError(
                f"{self._name}: HTTP {error.status_code}{hint}: {said_by(error)}",
                retryable=may_pass(error.status_code, error.code),
                retry_after_s=retry_after_s(error.response.headers),
                status=error.status_code,
            )
        return self.of_answer(error.body.get("code") if isinstance(error.body, Mapping) else None, said_by(error))

    def of_answer(self, code: object, said: object) -> ModelError:
        """The error for a failure that came in an answer; some servers put the status there, because it is too late
        for HTTP's."""
        text = f"{self._name}: {_one_line(said)}"
        status = code if isinstance(code, int) and 400 <= code < 600 else None
        if is_too_long(status, code, _one_line(said)):
            return ContextLengthError(text, status=status)
        retryable = may_pass(status) if status else code not in ("insufficient_quota", "invalid_request_error")
        return ModelError(text, retryable=retryable, status=status)

    def of_empty(self, answer: Mapping[str, Any]) -> ModelError:
        """The error for a whole answer without choices, which says at most why there are none."""
        problem = answer.get("error") or answer.get("detail") or answer.get("message") or answer
        code = problem.get("code") if isinstance(problem, Mapping) else None
        text = problem.get("message") if isinstance(problem, Mapping) else None
        return self.of_answer(code, text or problem)

    def broken(self, why: BaseException) -> ModelError:
        """The error for a connection that failed."""
        return ModelError(f"{self._name}: the connection failed: {type(why).__name__}: {why}", retryable=True)


def said_by(error: APIError) -> str:
    """The server's own text of an error, in one line and redacted. Gemini has it in a list, and OpenRouter has the
    text of the server behind it beside its own."""
    body = _error_object(error.body)
    details = body.get("metadata")
    behind = details.get("raw") if isinstance(details, Mapping) else None
    if message := body.get("message"):
        return _one_line(f"{message}: {behind}" if behind and isinstance(message, str) else message)
    return _one_line(error.body or error.message)


def _error_object(body: object) -> Mapping[str, Any]:
    """The object that describes an error, or an empty one if there is none."""
    if isinstance(body, list) and body and isinstance(body[0], Mapping):
        body = body[0].get("error")
    return body if isinstance(body, Mapping) else {}


def _one_line(said: object) -> str:
    text = said if isinstance(said, str) else json.dumps(redacted_data(said), ensure_ascii=False)
    return redacted(" ".join(text.split()))[:SHOWN]
