"""The status of a run: its state, from all that knows of it, as JSON and as text, and whether it is ready."""
