"""Gates: the checks that a model's call has to pass before it begins."""
