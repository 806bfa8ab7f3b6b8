"""``python -m dimos_streams`` is the command ``dimos-streams``."""

from dimos_streams.cli import main

if __name__ == "__main__":
    main()
