"""The constants and checks that all sides of a tool stream share: channels, bounds, ids, keys of closes."""
