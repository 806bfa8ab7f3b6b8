"""Stock skill modules: following a person, looking out for something, driving, observing."""

if __name__ == "skills":
    raise ImportError("import dimos_streams.skills instead; the folder is a package of dimos_streams")
