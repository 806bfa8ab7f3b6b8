"""Middleware for robots whose skills talk back."""

import sys

__version__ = "0.1.0"

if sys.version_info < (3, 11, 3):
    from dimos_streams.common.process.timeouts import mend_timeouts

    mend_timeouts()
