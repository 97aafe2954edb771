"""What LIME converges to, exactly, and what its coefficients hide.

:class:`TabularLaw` says how tabular LIME draws, codes and weights samples;
:func:`default_kernel_width` is the width that it has where none is given.
"""

from propopt.lime.explainer import limits
from propopt.lime.explanation import LimeExplanation
from propopt.lime.laws import GaussianLaw, GlimeLaw
from propopt.lime.laws.tabular import TabularLaw
from propopt.lime.laws.widths import default_kernel_width


__all__ = [
    "GaussianLaw",
    "GlimeLaw",
    "LimeExplanation",
    "TabularLaw",
    "default_kernel_width",
    "limits",
]
