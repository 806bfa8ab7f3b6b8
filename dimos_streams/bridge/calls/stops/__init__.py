"""Robots that are to stand still: who has ordered it, and which gates have said so."""
