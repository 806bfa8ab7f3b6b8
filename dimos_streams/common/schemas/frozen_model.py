"""The base class of what comes from outside, or goes there, and is checked on its way."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Base: frozen, and a field that it does not know is an error. So are infinity and NaN, which JSON does not have,
    and which would switch off whatever they bound.

    Validators are built when they are first needed: few processes need all. A body of a FastAPI route sets
    ``defer_build=False``: FastAPI builds it together with its parameter, of which pydantic warns.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)
