"""Delegation: a task of a mission given to another prompt with fewer skills."""
