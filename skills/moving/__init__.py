"""How skills move the base: geometry on the floor, ways around obstacles, going after a person."""
