"""The machine below a command: its signals, event loop, log files and what has to be installed."""
