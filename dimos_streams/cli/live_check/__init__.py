"""What a blueprint needs, beside what is on a bus: ``check --live``."""
