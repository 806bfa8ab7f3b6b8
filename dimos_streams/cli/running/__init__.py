"""One run from its plan to its end: what ``run`` was asked to do, and the session that does it."""
