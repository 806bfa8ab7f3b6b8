"""The commands: one file each, thin functions that typer makes a command line of."""
