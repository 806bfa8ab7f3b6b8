"""Language models, and what makes one of the name that an agent's settings give."""

from __future__ import annotations

import random
from collections.abc import Callable

from dimos_streams.agent.models.chat.refusals import ServerQuirks
from dimos_streams.agent.models.model_options import ModelOptions
from dimos_streams.agent.models.protocol import Model
from dimos_streams.agent.models.retrying import Retry, RetryingModel
from dimos_streams.agent.models.silence import SilenceModel
from dimos_streams.common.process.disk import at_home
from dimos_streams.errors import UserError, suggest

_FORMS = ("offline", "scripted:FILE", "openai:MODEL")
"""The forms of valid names, as errors list them."""
_AT_SERVERS: dict[str, tuple[str, ...]] = {
    "openai": (
        *("openai", "openai.resources.chat", "httpcore2"),
        *("dimos_streams.agent.models.openai_chat", "dimos_streams.agent.models.answer_body"),
    )
}
"""The kinds of models that ask a server, each with the modules that it imports when it is made or asked."""


def create_model(
    spec: str,
    *,
    base_url: str | None = None,
    options: ModelOptions | None = None,
    quirks: ServerQuirks | None = None,
) -> Model:
    """Return the model of that name: ``"offline"`` (commands, no LLM), ``"scripted:FILE"`` (a file of turns) or
    ``"openai:MODEL"`` (any server that speaks OpenAI's chat completions, at ``base_url``, with ``quirks``).

    Raises ``UserError`` for other names, a file that is not a script, and a server that needs a key or an extra.
    """
    kind, colon, rest = spec.partition(":")
    if kind == "offline" and not colon:
        from dimos_streams.agent.models.offline import OfflineModel

        return OfflineModel()
    if kind == "scripted" and rest:
        from dimos_streams.agent.models.scripted import ScriptedModel, load_script

        return ScriptedModel(load_script(at_home(rest)), name=spec)
    if kind == "openai" and rest:
        from dimos_streams.agent.models.openai_chat import OpenAIModel

        return OpenAIModel(rest, base_url=base_url, options=options, quirks=quirks)
    meant = [form.replace("FILE", rest).replace("MODEL", rest) if rest else form for form in _FORMS]
    raise UserError(f"there is no model {spec!r}{suggest(spec, meant)} (valid: {', '.join(map(repr, _FORMS))})")


def late_imports(spec: str) -> tuple[str, ...]:
    """Return the modules that a model of that name imports when it is made or asked, which may take a second."""
    return _AT_SERVERS[spec.partition(":")[0]] if asks_server(spec) else ()


def asks_server(spec: str) -> bool:
    """Return whether a model of that name asks a server, for which virtual time can't wait."""
    kind, _, rest = spec.partition(":")
    return kind in _AT_SERVERS and bool(rest)


def check_model(spec: str) -> None:
    """Raise ``UserError`` for a name that can't be a model here; what a server needs (key, extra) is not checked."""
    if spec != "offline" and not asks_server(spec):
        create_model(spec)


def guarded(
    model: Model,
    *,
    name: str,
    options: ModelOptions,
    rng: random.Random,
    on_retry: Callable[[Retry], None] | None = None,
) -> Model:
    """Return a model whose silence is an error, and whose errors are retried where they may pass.

    ``on_retry`` is called when an attempt has failed and there will be another.
    """
    return RetryingModel(
        SilenceModel(model, name=name, silence_s=options.silence_s),
        rng,
        attempts=options.attempts,
        initial_s=options.first_wait_s,
        longest_wait_s=options.longest_wait_s,
        on_retry=on_retry,
    )
