"""Options that are passed on as one value: the choice of a bridge, the request for a run."""
