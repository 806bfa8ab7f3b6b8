"""Makes the models of one agent, retried and guarded, with what was learnt of their servers; and lets go of them."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from dimos_streams.agent.config import AgentConfig
from dimos_streams.agent.models import create_model, guarded
from dimos_streams.agent.models.protocol import Model
from dimos_streams.agent.models.refusals import Manners
from dimos_streams.agent.models.retrying import Retry
from dimos_streams.agent.record.agent_events import Emit, EventKind
from dimos_streams.common.tasks import ends_within

_CLOSE_BOUND_S = 1.0
_logger = logging.getLogger(__name__)


class ModelFactory:
    """Makes models by name. What one of them learns of its server holds for all models of the same name."""

    def __init__(
        self,
        config: AgentConfig,
        emit: Emit,
        *,
        rng: random.Random,
        lessons: Mapping[str, Sequence[str]],
        missions: Callable[[], tuple[str, ...]],
    ) -> None:
        """``lessons`` were learnt by the process before this one, by model; ``missions`` returns those of the
        turn."""
        self._config = config
        self._emit = emit
        self._random = rng
        self._lessons = lessons
        self._missions = missions
        self._manners: dict[str, Manners] = {}

    def make(self, spec: str) -> Model:
        """Return the model of a name as in the config. Raises ``UserError``."""
        options = self._config.model_options
        model = create_model(spec, base_url=self._config.base_url, options=options, manners=self._manners_for(spec))
        return guarded(model, name=spec, options=options, rng=self._random, on_retry=self._on_retry)

    def _manners_for(self, spec: str) -> Manners:
        """The manners of a model's server: how it wants to be asked."""
        if spec not in self._manners:
            self._manners[spec] = Manners(
                vision=self._config.model_options.vision,
                learnt=self._lessons.get(spec, ()),
                on_learnt=partial(self._on_lesson, spec),
            )
        return self._manners[spec]

    def _on_lesson(self, spec: str, lesson: str) -> None:
        text = f"model {spec!r}: {lesson} from now on, because its server refused that"
        self._emit(EventKind.NOTE, (), text=text, model=spec, lesson=lesson)

    def _on_retry(self, retry: Retry) -> None:
        self._emit(
            EventKind.RETRY,
            self._missions(),
            text=f"The model is asked again in {retry.delay_s:.1f} s: {retry.error}",
            error=str(retry.error),
            attempt=retry.attempt,
            attempts=retry.attempts,
            delay_s=round(retry.delay_s, 3),
        )


async def close_models(models: Iterable[Model]) -> None:
    """Close models side by side. What goes wrong is logged and holds up nothing: nobody uses them any more."""
    await asyncio.gather(*(_close(model) for model in models))


async def _close(model: Model) -> None:
    try:
        if not await ends_within(_CLOSE_BOUND_S, model.close()):
            _logger.warning("%s did not close within %g s", type(model).__name__, _CLOSE_BOUND_S)
    except Exception:
        _logger.exception("%s failed while it was closed", type(model).__name__)
