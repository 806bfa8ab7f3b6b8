"""The settings of a replay beside those of the recorded run."""
