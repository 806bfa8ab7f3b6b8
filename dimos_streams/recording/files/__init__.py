"""The files of logs: which may be written, how an older one is replaced, and where in a damaged one events begin."""
