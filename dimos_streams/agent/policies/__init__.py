"""Permission: the checks that a model's call has to pass, and who is asked about it."""
