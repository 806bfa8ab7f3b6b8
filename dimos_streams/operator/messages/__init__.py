"""The reports of agents and the messages of ``WS /monitor``: one file for each side."""
