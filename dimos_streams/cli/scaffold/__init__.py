"""The files that ``new`` makes: their templates, names, places, and writing them all or none."""
