"""Blueprint files: what may be in one, and how it is read as far as it can be."""
