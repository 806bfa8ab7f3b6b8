"""Found by every Python process that a test starts under ``coverage run``: it is measured as well."""

import coverage

coverage.process_startup()
