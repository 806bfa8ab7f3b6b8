"""The commands of a fleet's hub: serving, its database, the robots that may connect."""
