"""Events over HTTP: streams of those to come, and pages of those that were."""
