"""What robots and a fleet hub say to each other: the models of its HTTP interface, and its limits."""
