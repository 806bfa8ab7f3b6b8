"""The calling end of tool streams: how a skill runs other skills, and reads the streams of its children."""
