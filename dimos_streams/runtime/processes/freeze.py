"""A module that the forkserver imports last: what it has imported stays shared with the workers.

The collector writes into every object that it looks at, and a page that is written to is shared no more.
"""

from __future__ import annotations

import gc

gc.freeze()
