"""The messages between agents, bridge and consoles: what operators see of a run and command."""
