"""Tabular LIME without sampling noise.

- :class:`~propopt.explainers.exact_lime.explainer.ExactLime`: the baseline.
- :mod:`propopt.explainers.exact_lime.family`: it at many kernel widths.
- :mod:`propopt.explainers.exact_lime.units`: its limits in the units asked for.
"""

from propopt.explainers.exact_lime.explainer import ExactLime


__all__ = ["ExactLime"]
