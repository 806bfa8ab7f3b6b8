"""Stock blueprints, as YAML files. The command line knows them by name: ``dimos-streams list``."""

if __name__ == "blueprints":
    raise ImportError("import dimos_streams.blueprints: blueprints is only where its files lie in the repository")
