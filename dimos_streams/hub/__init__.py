"""The fleet hub: the runs of many robots at one place, over HTTP as a bridge serves one of them."""
