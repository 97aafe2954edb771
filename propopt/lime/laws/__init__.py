r"""Laws of LIME: how samples are drawn around a row, coded as bits and weighted.

- :class:`~propopt.lime.laws.base.LimeLaw`: what a law is, made of a
  :class:`~propopt.lime.laws.column.LimeColumn` for each column.
- :class:`~propopt.lime.laws.tilt.Tilt`: the weighted law of one column around rows.
- :class:`~propopt.lime.laws.draws.Draws`: samples with their bits and weights.
- :class:`~propopt.lime.laws.tabular.TabularLaw`: bins, weighted by bits, made of
  :class:`~propopt.lime.laws.binned.BinnedColumn`\ s;
  :class:`~propopt.lime.laws.smooth.SmoothLaw`: the same bins, weighted by distance;
  :class:`~propopt.lime.laws.gaussian.GaussianLaw`: normal numbers, weighted by their
  distance; :class:`~propopt.lime.laws.glime.GlimeLaw`: any other, drawn from its
  weighted neighbourhood.
"""

from propopt.lime.laws.base import LimeLaw
from propopt.lime.laws.column import LimeColumn
from propopt.lime.laws.draws import Draws
from propopt.lime.laws.gaussian import GaussianLaw
from propopt.lime.laws.glime import GlimeLaw
from propopt.lime.laws.smooth import Polyline, SmoothLaw
from propopt.lime.laws.tabular import TabularLaw
from propopt.lime.laws.tilt import Tilt


__all__ = [
    "Draws",
    "GaussianLaw",
    "GlimeLaw",
    "LimeColumn",
    "LimeLaw",
    "Polyline",
    "SmoothLaw",
    "TabularLaw",
    "Tilt",
]
