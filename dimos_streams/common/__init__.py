"""Helpers for all packages: texts, secrets, log lines with a limit, error messages about bad input."""
