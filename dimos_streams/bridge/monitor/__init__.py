"""`WS /monitor`: the state of a run for operators, and their commands."""
