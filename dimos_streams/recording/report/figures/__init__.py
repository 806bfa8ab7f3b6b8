"""The drawings of a report: the map, the timeline of calls, and numbers over time."""
