"""`python -m tests.engine_faults` prints which faults the installed engines have.

`spark` adds Spark's, which starts a session; `page` writes the page of the docs instead.
"""

from __future__ import annotations

import sys

from rowsieve.providers.spark.jvm.java import spark_session
from tests.engine_faults.register import PAGE, page, report

if sys.argv[1:] == ["page"]:
    PAGE.write_text(page(), "utf-8")
else:
    session = spark_session("faults") if sys.argv[1:] == ["spark"] else None
    for line in report(session):
        sys.stdout.write(f"{line}\n")
