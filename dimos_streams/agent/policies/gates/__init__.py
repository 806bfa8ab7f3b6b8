"""Gates: what a model's call has to pass before it begins."""
