"""HTTP as clients speak it to servers that others run, and the tokens with which they do."""
