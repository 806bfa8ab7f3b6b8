"""HTTP on both sides: bearer tokens, checks of a request's origin, and sessions that follow no redirections."""
