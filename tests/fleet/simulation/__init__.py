"""A whole fleet that is simulated, with a hub, robots, operators, faults and crashes by a seed; see ``__main__``."""
