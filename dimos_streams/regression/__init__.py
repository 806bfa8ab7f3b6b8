"""Recorded logs as tests: inputs in, the modules under test, outputs compared with the recorded ones."""
