"""Tags of skills: words by which agents' configs choose them (``tag:safe``), and one that has a meaning here."""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field

MAX_TAGS = 16
MAX_TAG = 40
"""Maximum length of a tag, in characters."""
STOP: Final = "stop"
"""The tag of a skill that ends others: a bridge begins nothing that waits for what such a one ends."""
TAG_FORM = f"it begins with a small letter, then small letters, digits, _ and -, {MAX_TAG} characters at most"
_TAG = re.compile(rf"[a-z][a-z0-9_-]{{0,{MAX_TAG - 1}}}")


def checked_tag(tag: str) -> str:
    """Return the tag. Raises ``ValueError`` for a text that is no tag."""
    if not _TAG.fullmatch(tag):
        raise ValueError(f"{tag!r:.100} is no tag: {TAG_FORM}")
    return tag


Tags: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(checked_tag)], ...], Field(max_length=MAX_TAGS)]
