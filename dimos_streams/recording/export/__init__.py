"""Recordings in other formats: CSV tables, and MCAP as Foxglove shows it."""
