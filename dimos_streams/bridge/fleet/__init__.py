"""The robot's side of a fleet: ships the bridge's journal to a hub, and carries out what comes from there."""
