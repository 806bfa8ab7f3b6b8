"""Messages from the bridge to modules about their calls, repeated until they are heard."""
