"""What operators see of a run and say to it: the messages between agents, bridge and consoles."""
