"""The server: connections, who is let in, and whose turn it is."""
