"""Moving the base by skills: geometry on the floor, ways around obstacles, going after a person."""
