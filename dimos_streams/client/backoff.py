"""The delays before repeated attempts."""

from __future__ import annotations

import os
import random


class Backoff:
    """Delays that double from ``initial_s`` to ``maximum_s``, each lengthened at random by up to a half.

    ``initial_s`` counts even where it exceeds ``maximum_s``. The jitter keeps clients of one server from
    coming back all at once: it is that of the process, unless ``rng`` makes a module's runs repeat.
    """

    def __init__(self, rng: random.Random | None = None, *, initial_s: float = 0.1, maximum_s: float = 5.0) -> None:
        self._random = rng or random.Random(os.getpid())
        self._maximum_s = maximum_s
        self._failures = 0
        self.initial_s = initial_s

    def next(self, asked_s: float = 0.0) -> float:
        """Seconds to wait after one more failure; at least those that a server has asked for, of all its clients at
        once."""
        # The exponent is bounded because 2.0**1024 is an error.
        doubled = self.initial_s * 2.0 ** min(self._failures, 60)
        self._failures += 1
        return max(self.initial_s, min(self._maximum_s, doubled), asked_s) * self._random.uniform(1.0, 1.5)

    def reset(self) -> None:
        """Begin again at ``initial_s``, after a success."""
        self._failures = 0
