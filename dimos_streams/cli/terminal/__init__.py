"""What a person types and reads: arguments, options, tables, lines that change in place."""
