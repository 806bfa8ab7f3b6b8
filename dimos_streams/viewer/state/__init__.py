"""The world at one moment of a recording, folded from its messages: modules, agents, poses and holds."""
