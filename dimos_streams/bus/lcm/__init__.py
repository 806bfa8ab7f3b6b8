"""LCM over UDP multicast: the bus, and what keeps malformed and unwanted datagrams from it."""
