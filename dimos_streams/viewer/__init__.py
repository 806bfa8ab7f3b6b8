"""A recording looked at with the operators' page, read-only: a world that is folded from what was recorded, and a
virtual clock that can be set."""
