"""The state of each call, the calls that are remembered, and the leases that they hold."""
