"""The velocity gate, which every velocity passes on its way to the base."""
