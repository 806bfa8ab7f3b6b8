"""The host: it runs the skills of the modules of one process."""
