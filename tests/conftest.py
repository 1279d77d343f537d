"""What every test shares: the small profile repeats its examples, the deep one finds new ones.

A failure of `make test` is then a failure of the code at hand; `make test-deep` goes looking.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("small", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("deep", deadline=None, print_blob=True)
settings.load_profile("deep" if os.environ.get("ROWSIEVE_TESTS") == "deep" else "small")
