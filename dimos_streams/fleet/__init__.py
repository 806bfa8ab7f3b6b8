"""The messages between robots and a fleet hub: the models of its HTTP interface, and its limits."""
