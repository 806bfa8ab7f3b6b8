"""YAML files as plain data that remembers its lines, and what is wrong with them, one line for each thing."""
