"""Scripts that measure; each prints a table and, with --json, the numbers."""
