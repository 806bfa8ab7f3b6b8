"""Recordings in other formats: CSV tables, and MCAP with Foxglove's schemas."""
