"""The HTTP surface: the server and its bounds, event streams, problems, metrics."""
