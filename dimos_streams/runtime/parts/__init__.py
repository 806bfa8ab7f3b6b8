"""A run that is one of several machines' parts of a blueprint: what it is, and how the parts know each other."""
