"""What agents report, and the messages of ``WS /monitor``: one file for each side."""
