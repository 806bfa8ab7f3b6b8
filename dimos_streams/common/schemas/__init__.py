"""JSON schemas: plain ones of types, references in them, and what docstrings say of parameters."""
