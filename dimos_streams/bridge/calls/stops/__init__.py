"""Robots that are to stand still: the operators' orders, and the gates' confirmations."""
