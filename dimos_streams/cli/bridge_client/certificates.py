"""The certificates of a person who commands over TLS."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dimos_streams.common.process.disk import at_home, open_small
from dimos_streams.errors import UserError

if TYPE_CHECKING:
    import ssl

    from dimos_streams.client.http_session import Tls

CA, CERT, KEY = "DIMOS_STREAMS_CA", "DIMOS_STREAMS_CERT", "DIMOS_STREAMS_KEY"


def own_tls(url: str) -> Tls | None:
    """Return the files that the environment names: an authority's certificates, this person's own and its key. None
    if it names none, and for a URL without TLS, which needs none of them.

    Raises ``UserError`` for files that can't be used, and for a key without a certificate.
    """
    named = _named_tls() if url.startswith("https:") else None
    if named is not None:
        _context(named)  # requests would say of bad ones that nobody answers
    return named


def own_context(url: str) -> ssl.SSLContext | None:
    """Return the TLS context for a WebSocket's URL, made of the files that the environment names. None if it names
    none, and for a URL without TLS. Raises as ``own_tls`` does."""
    named = _named_tls() if url.startswith("wss:") else None
    return None if named is None else _context(named)


def _named_tls() -> Tls | None:
    files = [_file(variable) for variable in (CA, CERT, KEY)]
    if not any(files):
        return None
    from dimos_streams.client.http_session import Tls

    tls = Tls(*files)
    if tls.key is not None and tls.cert is None:
        raise UserError(f"{KEY} is the key of a certificate: set {CERT} too")
    return tls


def _context(tls: Tls) -> ssl.SSLContext:
    import ssl

    try:
        context = ssl.create_default_context(cafile=tls.ca)
        if tls.cert is not None:
            context.load_cert_chain(tls.cert, tls.key)
    except OSError as error:
        named = " and ".join(variable for variable in (CA, CERT, KEY) if os.environ.get(variable))
        raise UserError(f"the files of {named} can't be used: {error}") from error
    return context


def _file(variable: str) -> Path | None:
    given = os.environ.get(variable)
    if not given:
        return None
    file = at_home(given)
    try:
        with open_small(file):
            return file
    except OSError as error:
        valid = "a file of certificates or a key (PEM)"
        raise UserError(f"{variable} {given!r}: {error.strerror}; valid: {valid}") from error
