"""YAML files as plain data that remembers its lines, and reports of their mistakes, one line for each."""
