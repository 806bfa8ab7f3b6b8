"""What people read: numbers of bytes, dates, the beginnings of texts that are too long, and escaped texts."""
