"""The terminal: arguments, options, tables, lines that change in place."""
