"""The certificates of a person who commands over TLS."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dimos_streams.errors import UserError

if TYPE_CHECKING:
    import ssl

    from dimos_streams.client.http_session import Tls

CA, CERT, KEY = "DIMOS_STREAMS_CA", "DIMOS_STREAMS_CERT", "DIMOS_STREAMS_KEY"


def own_tls() -> Tls:
    """Return the files that the environment names: an authority's certificates, this person's own and its key.

    Raises ``UserError`` for one that can't be read, and for a key without a certificate.
    """
    from dimos_streams.client.http_session import Tls

    tls = Tls(*map(_file, (CA, CERT, KEY)))
    if tls.key is not None and tls.cert is None:
        raise UserError(f"{KEY} is the key of a certificate: set {CERT} too")
    return tls


def own_context() -> ssl.SSLContext:
    """Return the same for a WebSocket. Raises as ``own_tls`` does, also for files that are no certificates."""
    import ssl

    tls = own_tls()
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        if tls.cert is not None:
            context.load_cert_chain(tls.cert, tls.key)
    except OSError as error:
        raise UserError(f"the files of {CA}, {CERT} and {KEY} can't be used: {error}") from error
    return context


def _file(variable: str) -> Path | None:
    given = os.environ.get(variable)
    if not given:
        return None
    try:
        with open(given, "rb"):
            return Path(given)
    except OSError as error:
        raise UserError(
            f"{variable} {given!r}: {error.strerror}; valid: a file of certificates or a key (PEM)"
        ) from error
