"""What a blueprint may have wrong, one file for each kind of problem: each yields what it finds, or
raises it where somebody's Python makes a blueprint."""
