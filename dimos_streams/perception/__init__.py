"""Detectors, tracking, and the module that publishes what they see. Import from the files themselves."""
