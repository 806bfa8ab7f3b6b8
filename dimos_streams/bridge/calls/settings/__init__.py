"""Live settings as calls: changes, and the rollbacks of those that modules did not answer."""
