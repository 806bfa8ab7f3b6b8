"""Pictures in what skills say: as files of the run, or as data URLs."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from dimos_streams.agent.context.memo import Memo
from dimos_streams.agent.models.protocol import ImagePart
from dimos_streams.common.newest_entries import NewestEntries
from dimos_streams.common.process.disk import read_small, real_path
from dimos_streams.errors import MessageError
from dimos_streams.messages.picture_files import check_claim
from dimos_streams.tool_stream.event import ToolEvent

_MAX_BYTES = 5_000_000
_CACHED = 16
_MAX_DEPTH = 4
_URL = "data:image/"
_URL_TYPES = frozenset({"image/jpeg", "image/png", "image/webp"})
_TYPES = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png"}
_KEYS = frozenset({"picture", "pictures", "image", "images"})
_logger = logging.getLogger(__name__)


class Pictures:
    """Finds the pictures of events: texts under ``picture``, ``image`` (or a list of them), anywhere in the data.

    A text is the path of a JPEG or PNG file within the run's directory, or the data URL of one, or of a WebP. Others
    are no pictures, nor are files that claim to be huge: what a model's server refuses costs it all later ones, too.
    """

    def __init__(self, directory: Path | None) -> None:
        """``directory`` is the run's; with None only data URLs count."""
        self._directory = real_path(directory) if directory else None
        self._loaded = NewestEntries[tuple[str, int, str], ImagePart | None](_CACHED)
        """Pictures by the call and the number of the event that brought them, and by name: a skill may write one file
        again and again."""
        self._names: Memo[ToolEvent, list[str]] = Memo(self._named_by)

    def names(self, event: ToolEvent) -> list[str]:
        """The pictures that an event brings, as paths and URLs."""
        return self._names.of(event) if event.data else []

    def _named_by(self, event: ToolEvent) -> list[str]:
        return [text for text in _texts(event.data) if text.startswith(_URL) or self._media_type(text)]

    def load(self, name: str, event: ToolEvent) -> ImagePart | None:
        """The picture of that name which an event brings, as it is when it is first asked for; None, and a line in
        the log, if it can't be had."""
        key = event.call_id, event.seq, name
        if key not in self._loaded:
            part = _from_url(name) if name.startswith(_URL) else self._from_file(name)
            self._loaded[key] = part if part is None or _is_modest(part) else None
        return self._loaded[key]

    def _media_type(self, name: str) -> str | None:
        return _TYPES.get(PurePath(name).suffix.lower()) if self._directory is not None and len(name) < 4096 else None

    def _from_file(self, name: str) -> ImagePart | None:
        assert self._directory is not None
        try:
            path = real_path(Path(name))
            if not path.is_relative_to(self._directory):
                _logger.warning("the picture %r is outside the run's directory", name[:200])
                return None
            media_type = self._media_type(str(path))  # of what a link leads to: the run's record has the token
            return ImagePart(read_small(path, _MAX_BYTES), media_type) if media_type else None
        except (OSError, ValueError) as error:
            _logger.warning("the picture %r can't be read: %s", name[:200], error)
            return None


def _is_modest(part: ImagePart) -> bool:
    try:
        check_claim(part.data)
    except MessageError as error:
        _logger.warning("a picture is left out: %s", error.why)
        return False
    return True


def without_urls(value: Any) -> Any:
    """Return data with a word in place of each picture's data URL, for texts."""
    if isinstance(value, str):
        return "[a picture]" if value.startswith(_URL) else value
    if isinstance(value, Mapping):
        return {key: without_urls(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [without_urls(part) for part in value]
    return value


def _from_url(text: str) -> ImagePart | None:
    head, comma, body = text.partition(",")
    if not comma or not head.endswith(";base64") or len(body) > _MAX_BYTES:
        return None
    try:
        media_type = head.removeprefix("data:").removesuffix(";base64")
        return ImagePart(base64.b64decode(body, validate=True), media_type) if media_type in _URL_TYPES else None
    except (binascii.Error, ValueError):
        return None


def _texts(data: Mapping[str, Any]) -> list[str]:
    """The texts that may name pictures, in the order of the data."""
    found: list[str] = []
    _collect(data, 0, False, found)
    return found


def _collect(value: Any, depth: int, picture: bool, found: list[str]) -> None:
    if isinstance(value, str):
        if picture:
            found.append(value)
    elif depth > _MAX_DEPTH:
        return
    elif isinstance(value, dict | Mapping):
        for key, part in value.items():
            _collect(part, depth + 1, key in _KEYS, found)
    elif isinstance(value, list | tuple):
        for part in value:
            _collect(part, depth + 1, picture, found)
