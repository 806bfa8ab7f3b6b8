"""HTTP as clients speak it to servers that others run."""
