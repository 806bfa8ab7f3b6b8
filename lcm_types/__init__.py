"""Message definitions in LCM's language; the classes made from them are in ``dimos_streams.messages``."""

if __name__ == "lcm_types":
    raise ImportError("import dimos_streams.lcm_types: lcm_types is only where its files lie in the repository")
