"""The receiving end of tool streams: every event once and in order, or an explicit gap."""
