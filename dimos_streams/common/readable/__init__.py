"""What people read: numbers of bytes, dates, and the beginnings of texts that are too long."""
