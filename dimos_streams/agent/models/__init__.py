"""Models by name."""

from __future__ import annotations

from dimos_streams.agent.models.base import Model
from dimos_streams.errors import UserError, suggest

_FORMS = {"offline": "offline", "scripted": "scripted:FILE"}


def create_model(name: str) -> Model:
    """The model of that name: ``"offline"`` (commands, no LLM) or ``"scripted:FILE"`` (a file of turns).

    Raises ``UserError`` for other names and for a file that is no script.
    """
    kind, colon, rest = name.partition(":")
    if kind == "offline" and not colon:
        from dimos_streams.agent.models.offline import OfflineModel

        return OfflineModel()
    if kind == "scripted" and rest:
        from dimos_streams.agent.models.scripted import ScriptedModel, load_script

        return ScriptedModel(load_script(rest), name=name)
    valid = ", ".join(repr(form) for form in _FORMS.values())
    raise UserError(f"there is no model {name!r}{suggest(kind, _FORMS)} (valid: {valid})")
