"""A run as Foxglove shows it: live over its protocol, and, by the same conversion, in exported recordings."""
