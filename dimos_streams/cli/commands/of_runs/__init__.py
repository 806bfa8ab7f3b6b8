"""The commands for what runs: they ask its bridge, its robots or its files."""
