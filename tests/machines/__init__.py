"""Runs that are split over machines, which are network namespaces."""
