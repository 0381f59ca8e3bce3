"""Reports: pages about runs and models, one HTML file each that needs no network.

``result.report("report.html")`` writes one about a result, ``callbacks=[Report("run.html")]`` while a
run goes on. `TensorBoard` writes a run for that program.
"""

from smalto.reporting.live import Report
from smalto.reporting.small import small_report
from smalto.reporting.tensorboard import TensorBoard
from smalto.reporting.writing import write_report

__all__ = ["Report", "TensorBoard", "small_report", "write_report"]
