"""The consoles that people sit in front of: the conversation with an agent, and the stream of what agents do."""
