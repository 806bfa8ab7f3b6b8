"""Turns: the model answers, the calls that it asks for are run, until it asks for nothing more or has to stop."""
