"""The HTTP interface of a hub: one side for robots, the other one as a bridge has it."""
