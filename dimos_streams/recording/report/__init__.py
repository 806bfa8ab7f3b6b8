"""A recording as one page that tells what happened: ``write_report``."""
