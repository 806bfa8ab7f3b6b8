"""JSON: read as it comes from outside, written for others, and compared."""
