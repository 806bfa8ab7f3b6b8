"""The reading of a call's arguments by gates: do they fit a pattern, lead into a zone, or name a skill?"""
