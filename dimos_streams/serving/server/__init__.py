"""The server: its connections, the guard before the app, and the order of requests."""
