"""Messages and calls in Foxglove's schemas."""
