"""What Foxglove is shown of a run: live over its protocol, and, by the same conversion, in exported recordings."""
