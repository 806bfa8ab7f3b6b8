"""The state that a new process of an agent reads from the record of one that died."""
