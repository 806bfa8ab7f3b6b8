"""Numbers of bytes as people read them."""


def byte_size(size: float) -> str:
    """A number of bytes with its unit, of a thousand each: ``"2.5 MB"``."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"
