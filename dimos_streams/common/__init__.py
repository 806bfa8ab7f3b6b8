"""Small things that all packages stand on: text, secrets, log lines with a limit, error messages about bad input."""
