"""Calls at a bridge: how one is begun, followed and shown."""
