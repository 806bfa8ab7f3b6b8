"""The settings of how models see results, as a blueprint gives them."""

from __future__ import annotations

from pydantic import Field

from dimos_streams.common.schemas.frozen_model import FrozenModel


class ResultSettings(FrozenModel):
    """Settings of how models see results."""

    max_characters: int = Field(default=8000, ge=200)
    """Maximum length of a result in characters, without the note about the rest; longer ones are shortened."""
    masked_after: int | None = Field(default=20, ge=1)
    """The number of the model's answers after which an older result is replaced by a note; None keeps all."""
    masked_above: int = Field(default=400, ge=0)
    """The length in characters up to which results are never masked."""
    images: int = Field(default=4, ge=0)
    """The number of the newest pictures that are shown; older ones are only mentioned."""
    store_bytes: int = Field(default=32_000_000, ge=1)
    """Maximum size of the whole results that are kept, in bytes; the newest stay."""
