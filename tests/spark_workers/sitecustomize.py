"""Python runs this module in each process that Spark starts, when its folder is on PYTHONPATH.

Spark forks a worker for every step that plans or commits, and for every task that runs again after
a failure. Each would import PySpark from an archive without bytecode, and the package: half of the
CPU seconds of Spark's tests. A daemon imports them once here, before it forks.
"""

import gc
import sys
from importlib import import_module

_ARCHIVES = (".zip", ".jar")  # PySpark again, which is also installed
_OF_EVERY_WORKER = (
    "pandas",
    "pyspark.logger.worker_io",
    "pyspark.messages",
    "pyspark.sql.conversion",
    "pyspark.sql.worker.utils",
    "pyspark.worker_message",
    "pyspark.worker_util",
    "rowsieve.providers.spark.source",
)

if any(argument.startswith("pyspark.") for argument in sys.orig_argv):
    sys.path[:] = [path for path in sys.path if not path.endswith(_ARCHIVES)]
if "pyspark.daemon" in sys.orig_argv:
    for _name in _OF_EVERY_WORKER:
        import_module(_name)
    gc.freeze()  # a worker collects garbage after each task
