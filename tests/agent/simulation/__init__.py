"""A whole system that is simulated, with operators, faults and crashes by a seed; see ``__main__``."""
