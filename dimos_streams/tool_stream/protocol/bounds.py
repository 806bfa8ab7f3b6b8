"""The largest sizes of the parts of a call's messages."""

MAX_PAYLOAD = 48_000
"""Maximum size of text and data in one event, in bytes: with its other fields it stays below what an untuned machine
delivers."""
MAX_EVENT = 60_000
"""Maximum size of a whole event, in bytes; no publisher sends a larger one."""
REQUEST_BYTES = 512 * 1024
"""Maximum size, in bytes, of the requests that wait for a handler; likewise of the calls, and of the cancels."""
MAX_ARGUMENTS = 40_000
"""Maximum size of a call's arguments as JSON, in bytes: call and ``open`` event must each fit into one datagram."""
MAX_DATA_DEPTH = 100
"""Maximum depth of an event's data; an object or a list is a level. Whoever hands an event on puts a few levels
around its data, and readers of JSON refuse what has more than 200."""
MAX_ARGUMENTS_DEPTH = 64
"""Maximum depth of a call's arguments, which are within the data of its ``open``, and within the arguments of its
review."""
MAX_REASON = 4000
"""Maximum number of characters of the reason for which a call is refused or is to end."""
