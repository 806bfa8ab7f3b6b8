"""The files of a journal beside the one that it writes: its tail, copies of it, and those that were moved aside."""
