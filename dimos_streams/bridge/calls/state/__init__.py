"""What is known of calls: the state of each, those that are remembered, and the leases that they hold."""
