"""The parts of the event loop in virtual time: a selector that jumps instead of waiting, and handles that cost less
than asyncio's."""
