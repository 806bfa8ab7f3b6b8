"""Work and its budgets: missions, the message queue that feeds them, limits, and why they end."""
