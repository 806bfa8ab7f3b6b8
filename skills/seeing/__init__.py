"""How skills take what a detector saw: frames, sightings, one person among all."""
