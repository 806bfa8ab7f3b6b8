"""Texts for people: numbers of bytes, dates, the beginnings of texts that are too long, escaped texts, and misspelt
names."""
