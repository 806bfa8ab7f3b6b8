"""The tools of a dimos ``McpServer`` as skills with tool streams, by JSON over HTTP and server-sent events."""
