"""Calls: their state, leases and ledger, who may begin them, and the watchdog that closes what is lost."""
