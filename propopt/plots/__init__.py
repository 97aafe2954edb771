"""Charts, and one function that draws them on axes of matplotlib.

Results make charts: ``best.plot()`` draws the one that fits, and ``best.plot.scatter(
"bmi")`` another. Each takes ``ax``, returns it, and never shows it.
"""

from typing import TYPE_CHECKING

from propopt.base.charts import Grid, Lines, Scatter, Steps, Swarm
from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr
from propopt.plots.drawing import draw


__all__ = ["Grid", "Lines", "Scatter", "Steps", "Swarm", "draw"]


if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = _suggesting_getattr("po.plots", __all__)
