"""Shipping of journals to a hub: the one that is being written, and those that earlier runs have left."""
