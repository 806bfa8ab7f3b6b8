"""The bridge: takes tool streams off the bus, keeps them, serves them over HTTP, and takes calls in."""
