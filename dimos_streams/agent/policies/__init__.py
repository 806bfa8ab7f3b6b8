"""Permission: what a call of a model has to pass, and who is asked about it."""
