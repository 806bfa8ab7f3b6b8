"""Settings of the link to a fleet hub."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from dimos_streams.common.http.bearer import token_in
from dimos_streams.common.process.disk import at_home, open_small
from dimos_streams.common.schemas.frozen_model import FrozenModel
from dimos_streams.common.schemas.http_url import http_host
from dimos_streams.common.secrets import know_url
from dimos_streams.errors import UserError
from dimos_streams.fleet.protocol import RobotName


def _from_text(value: Any) -> Any:
    """Take a text alone as the URL."""
    return {"url": value} if isinstance(value, str) else value


class HubLinkSettings(FrozenModel):
    """Settings of a robot's link to a hub: the hub's address, and the robot's name and credentials."""

    url: str
    """The hub's address: ``https://hub.example.org``."""
    robot: RobotName = Field(default_factory=lambda: own_name(), validate_default=True)
    """The robot's name at the hub; by default the machine's."""
    token_file: Path | None = None
    """A file with the robot's token. It is read at each connection, so a token can be replaced at any time."""
    ca: Path | None = None
    """Certificates (PEM), one of which must have signed the hub's; by default those that are known everywhere."""
    cert: Path | None = None
    """The robot's own certificate (PEM), where the hub wants one."""
    key: Path | None = None
    """The key of ``cert``, if it is not in the same file."""
    age_s: float = Field(default=0.5, ge=0.02, le=60.0)
    """Time, in seconds, for which events are collected before they are shipped."""

    @field_validator("url")
    @classmethod
    def _is_a_hubs(cls, url: str) -> str:
        try:
            http_host(url)
        except ValueError as error:
            raise ValueError("this is no address of a hub; one is of the form https://HOST[:PORT][/PATH]") from error
        if urlsplit(url).username is not None:
            raise ValueError("a hub takes no password: `token_file` names a file with the robot's token")
        know_url(url)
        return url.rstrip("/")

    @model_validator(mode="after")
    def _key_has_cert(self) -> Self:
        if self.key is not None and self.cert is None:
            raise ValueError("`key` is the key of `cert`, which is not given")
        return self

    def token(self) -> str | None:
        """The robot's token as its file has it now, None without one. Raises ``UserError`` if it can't be read."""
        if self.token_file is None:
            return None
        try:
            return token_in(at_home(self.token_file))
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise UserError(f"the robot's token for the hub can't be read from {self.token_file}: {why}") from error

    def tls_files(self) -> dict[str, Path]:
        """The files for TLS by their settings, with the user's directory for ``~``."""
        return {name: at_home(path) for name in ("ca", "cert", "key") if (path := getattr(self, name)) is not None}

    def missing_files(self) -> dict[str, str]:
        """The settings that name files which can't be used now, with the reason. Until they can, nothing is
        shipped."""
        missing = {
            name: f"there is no file {str(path)!r} that can be read for the link to the hub; until there is,"
            " nothing is shipped"
            for name, path in self.tls_files().items()
            if not _can_be_read(path)
        }
        try:
            self.token()
        except UserError as error:
            missing["token_file"] = f"{error}; until it can, nothing is shipped"
        return missing


def _can_be_read(path: Path) -> bool:
    try:
        with open_small(path):
            return True
    except OSError:
        return False


HubAddress = Annotated[HubLinkSettings, BeforeValidator(_from_text)]
"""The hub as a blueprint names it: the URL alone, or all settings."""


def own_name() -> str:
    """The machine's name, in the characters that a robot's name may have."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", socket.gethostname().partition(".")[0]).lstrip("-_")[:63]
    return name or "robot"
