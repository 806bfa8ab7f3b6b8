"""`GET /`: the operator's page, a client of `WS /monitor`."""
