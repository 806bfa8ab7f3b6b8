"""The check that a secret can be sent in a header of HTTP."""

from __future__ import annotations

import re

from dimos_streams.errors import UserError

_LINE_ENDS = "\r\n"
_VISIBLE = re.compile(r"[!-~]+")
_UNFILLED = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)")
"""The place of a variable, as files of Compose, Kubernetes and systemd have it."""


def checked(secret: str, where: str) -> str:
    """A secret that can be sent in a header. Raises ``UserError`` that names where it is from, and not the secret."""
    if _UNFILLED.fullmatch(secret):
        # Whoever has read the file would know it.
        raise UserError(
            f"{where} is the place of a variable, as ${{NAME}}, in which nothing puts the variable's value"
        )
    if _VISIBLE.fullmatch(secret):
        return secret
    if not secret:
        what = "is empty"
    elif secret != secret.strip():
        verb, edge = ("ends", secret[-1]) if secret[-1].isspace() else ("begins", secret[0])
        what = f"{verb} with {'a line end' if edge in _LINE_ENDS else 'a blank'}"
    else:
        what = "has characters that are no visible ASCII"
    raise UserError(f"{where} {what}; valid: visible ASCII characters without spaces")
