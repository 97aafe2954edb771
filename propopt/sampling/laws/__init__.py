"""Laws of the other values that columns could have, and contrasts in each column.

- :class:`~propopt.sampling.laws.reference.Reference`: the rows that laws are made of.
- :class:`~propopt.sampling.laws.data_law.DataLaw`: observed values, near those of the
  row; :class:`~propopt.sampling.laws.noise_law.NoiseLaw`: noise.
- :class:`~propopt.sampling.laws.box_means.BoxMeans`: means and contrasts of sums of
  boxes under either, exactly.

``numeric`` with its ``tempering`` and ``coded`` are the columns of a data law, and
``intervals`` numbers under noise; ``known`` holds what a law makes of sets.
"""

from propopt.sampling.laws.box_means import BoxMeans
from propopt.sampling.laws.data_law import DataLaw
from propopt.sampling.laws.known import Law
from propopt.sampling.laws.measures import Measure
from propopt.sampling.laws.noise_law import NoiseLaw
from propopt.sampling.laws.reference import Reference


__all__ = ["BoxMeans", "DataLaw", "Law", "Measure", "NoiseLaw", "Reference"]
