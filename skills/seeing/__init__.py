"""Detections as skills take them: frames, sightings, one person among all."""
