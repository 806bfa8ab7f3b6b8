"""The secrets of this process, and their redaction in all text that enters or leaves it.

A process knows a secret from the moment at which it is given one: the keys of models and the bridge's token, what a
URL has before its host, and the settings whose type or name says that they are secret.
"""

from dimos_streams.common.secrets.file_readers import readable_by_all
from dimos_streams.common.secrets.header import checked
from dimos_streams.common.secrets.known import (
    VARIABLES,
    RedactedPieces,
    has_secret,
    know,
    know_environment,
    know_url,
    redacted,
    redacted_data,
    redacted_values,
    unreadable_url,
)
from dimos_streams.common.secrets.redaction import REDACTED, SHORTEST, Redaction
from dimos_streams.common.secrets.settings import (
    has_secret_setting,
    is_secret,
    know_settings,
    masked,
    telling_name,
)
from dimos_streams.common.secrets.url_users import users_redacted, without_user

__all__ = [
    "REDACTED",
    "SHORTEST",
    "VARIABLES",
    "RedactedPieces",
    "Redaction",
    "checked",
    "has_secret",
    "has_secret_setting",
    "is_secret",
    "know",
    "know_environment",
    "know_settings",
    "know_url",
    "masked",
    "readable_by_all",
    "redacted",
    "redacted_data",
    "redacted_values",
    "telling_name",
    "unreadable_url",
    "users_redacted",
    "without_user",
]
