"""The checks of blueprints, one file for each kind of problem: each yields what it finds, or raises it
where somebody's Python makes a blueprint."""
