"""The display of a run in its terminal."""
