"""The signature of a receiver's requests: its name, and the instance of a module that it asks."""

from __future__ import annotations


def signed(receiver: str, instance: str) -> str:
    """Return a receiver's name with the instance that it asks, which only readers of that instance's events know."""
    return f"{receiver}@{instance}" if instance else receiver


def parse_signature(signature: str) -> tuple[str, str]:
    """Return a receiver's name, and the instance that it asks, empty if the signature names none: the inverse."""
    receiver, _, instance = signature.partition("@")
    return receiver, instance


def shown_instance(instance: str) -> str:
    """Return an instance for people and readers of HTTP: without its last part, which is secret (``heart.py``)."""
    return instance.rpartition("-")[0] or instance
