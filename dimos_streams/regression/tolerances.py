"""The tolerances by which a replay may differ from its recording."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.documents.document import read_document
from dimos_streams.documents.validation import validated
from dimos_streams.errors import UserError
from dimos_streams.messages.codec import split_channel

_Number = Annotated[float, Field(ge=0.0, allow_inf_nan=False, strict=True)]
"""A tolerance: true and false are none, and with infinity whatever is compared would be equal."""
_INDEX = re.compile(r"\[\d+\]")


class Tolerances(FrozenModel):
    """The tolerances of a comparison. Without any, everything must be equal. NaN equals NaN."""

    time_s: _Number = 0.0
    """Seconds by which an output may come earlier or later than its counterpart, and by which stamps may differ."""
    absolute: _Number = 0.0
    """The tolerance of every number, those in texts included."""
    relative: _Number = 0.0
    """The tolerance of every number, as a share of it; the larger one of the two tolerances counts."""
    unmatched: Annotated[_Number, Field(le=1.0)] = 0.0
    """The share of a channel's messages, or of a call's progress, that may have no counterpart that agrees; above 0
    it is one at least, unless that is all there is. A call's other events must all have one."""
    fields: Mapping[str, _Number] = {}
    """Absolute tolerances of fields: ``linear.x``, or of one topic: ``/skill_vel:linear.x``. ``poses.x`` means the
    field in each entry of an array. A field inside of one that is named counts too."""

    def allowed(self, channel: str, path: str, value: float) -> float:
        """The greatest difference to ``value`` that counts as equal."""
        named = self._named(channel, path) if self.fields else None
        if named is not None:
            return named
        return max(self.absolute, self.relative * abs(value)) if math.isfinite(value) else 0.0

    def _named(self, channel: str, path: str) -> float | None:
        topic = split_channel(channel)[0]
        names = _INDEX.sub("", path).split(".")
        for length in range(len(names), 0, -1):
            field = ".".join(names[:length])
            for key in (f"{topic}:{field}", field):
                if key in self.fields:
                    return self.fields[key]
        return None


EXACT = Tolerances()
LIVE = Tolerances(time_s=0.25, absolute=0.1, relative=0.05, unmatched=0.1, fields={"data.bearing_deg": 6.0})
"""The tolerances for logs of live runs: a recorder does not know what a module had seen at the moment when it acted.
On a machine that is not busy a fifth of it is enough."""


def load_tolerances(path: Path) -> Tolerances:
    """Tolerances from YAML. Raises ``UserError``, which names the file, and the line of each thing that is wrong in
    it."""
    return validated(read_document(path, "tolerances"), Tolerances, lambda path: "tolerances")


def with_settings(tolerances: Tolerances, settings: Iterable[str], time_s: float | None = None) -> Tolerances:
    """Return the tolerances with the command line's: ``0.01`` for all numbers, ``FIELD=0.01``. Raises
    ``UserError``."""
    fields, absolute = dict(tolerances.fields), tolerances.absolute
    for setting in settings:
        name, equals, text = setting.rpartition("=")
        try:
            value = float(text)
        except ValueError:
            value = None
        if value is None or bool(equals) != bool(name):
            raise UserError(
                f"--tolerance {setting!r}: expected a number, or FIELD=NUMBER as in linear.x=0.01 or /odom:pose=0.1"
            )
        if not 0 <= value < math.inf:
            raise UserError(f"--tolerance {setting!r}: the number must be finite, and at least 0")
        if name:
            fields[name] = value
        else:
            absolute = value
    update: dict[str, object] = {"fields": fields, "absolute": absolute}
    if time_s is not None:
        if not 0 <= time_s < math.inf:
            raise UserError(f"--time-tolerance {time_s!r}: the seconds must be finite, and at least 0")
        update["time_s"] = time_s
    return tolerances.model_copy(update=update)
