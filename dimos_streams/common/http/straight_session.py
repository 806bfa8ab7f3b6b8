"""Sessions of requests that leave redirections to whoever has asked."""

from __future__ import annotations

import requests


class StraightSession(requests.Session):
    """A session that takes a redirection for an answer like any other. That of requests reads the whole body of one,
    unpacked and without a bound, before anybody sees its status, even if it is not to be followed."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: no answer leads anywhere."""
        return
