"""Check the table of a feature in a process of its own: `FEATURE FOLDER`."""

from __future__ import annotations

import sys

import rowsieve
from tests.feature_matrix.features import FEATURES
from tests.feature_matrix.holding import check

if __name__ == "__main__":
    check(rowsieve.open_table(sys.argv[2]), FEATURES[sys.argv[1]])
