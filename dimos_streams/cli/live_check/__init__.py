"""The comparison of what a blueprint needs with what is on a bus: ``check --live``."""
