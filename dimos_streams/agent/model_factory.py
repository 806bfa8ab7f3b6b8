"""Makes the models of one agent, retried and guarded, with what was learnt of their servers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial

from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.loop.model_in_use import ModelInUse
from dimos_streams.agent.models import create_model, guarded
from dimos_streams.agent.models.chat.refusals import ServerQuirks
from dimos_streams.agent.models.protocol import Model
from dimos_streams.agent.models.retrying import Retry
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.common.listeners import Listeners


class ModelFactory:
    """Makes models by name. What one of them learns of its server holds for all models of the same name."""

    def __init__(
        self,
        config: AgentConfig,
        emit: Emit,
        *,
        rng: random.Random,
        lessons: Mapping[str, Sequence[str]],
    ) -> None:
        """``lessons`` are the quirks that the process before this one found, by model."""
        self._config = config
        self._emit = emit
        self._random = rng
        self._lessons = lessons
        self.retried: Listeners[[Retry]] = Listeners()
        """Called with each failed attempt of a model that is asked again."""
        self._quirks: dict[str, ServerQuirks] = {}

    def in_use(self, spec: str) -> ModelInUse:
        """Return the model of a name as in the config, with the limits that suit it. Raises ``UserError``."""
        config = self._config
        return ModelInUse(spec, self.make(spec), config.loop_limits(spec), config.model_options.pricing)

    def make(self, spec: str) -> Model:
        """Return the adapter of a model of a name as in the config. Raises ``UserError``."""
        options = self._config.model_options
        model = create_model(spec, base_url=self._config.base_url, options=options, quirks=self._quirks_of(spec))
        return guarded(model, name=spec, options=options, rng=self._random, on_retry=self.retried.notify)

    def _quirks_of(self, spec: str) -> ServerQuirks:
        """The quirks of a model's server, as far as they are known."""
        if spec not in self._quirks:
            self._quirks[spec] = ServerQuirks(
                vision=self._config.model_options.vision,
                learnt=self._lessons.get(spec, ()),
                on_learnt=partial(self._on_lesson, spec),
            )
        return self._quirks[spec]

    def _on_lesson(self, spec: str, lesson: str) -> None:
        text = f"model {spec!r}: {lesson} from now on, because its server refused that"
        self._emit(EventKind.NOTE, (), text=text, model=spec, lesson=lesson)
