"""The files of logs: which may be written, and how an older recording is replaced."""
