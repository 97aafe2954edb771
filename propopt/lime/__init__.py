"""What LIME converges to, exactly, and what its coefficients hide.

:func:`limits` explains rows of a table by what the coefficients of LIME tend to, and
:class:`LimeExplainer` reads a model once for rows that come one by one; its
:class:`LimeExplanation` knows their noise and paths, and its ``diagnose()``, a
:class:`LimeDiagnosis`, what they hide.

Laws say how LIME draws, codes and weights samples; each is a :class:`LimeLaw`:

- :class:`TabularLaw`: bins of data (``from_data``) or of your own (``of_bins``),
  weighted by bits, as in the package ``lime``;
- :class:`SmoothLaw`: the same bins, weighted by distance along each column;
- :class:`GaussianLaw`: normal samples, weighted by distance;
- :class:`GlimeLaw`: any other, drawn from its weighted neighbourhood.

Texts have words: :func:`text_limits` explains documents, as a
:class:`LimeExplanation`; :class:`TextLaw` says how words are deleted.
"""

from typing import TYPE_CHECKING

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr
from propopt.lime.diagnosis.diagnosis import LimeDiagnosis
from propopt.lime.explaining import LimeExplainer, limits, text_limits
from propopt.lime.explanation import LimeExplanation
from propopt.lime.laws.gaussian_law import GaussianLaw
from propopt.lime.laws.lime_law import GlimeLaw, LimeLaw
from propopt.lime.laws.tabular_law import SmoothLaw, TabularLaw
from propopt.lime.text.word_limits import TextLaw


__all__ = [
    "GaussianLaw",
    "GlimeLaw",
    "LimeDiagnosis",
    "LimeExplainer",
    "LimeExplanation",
    "LimeLaw",
    "SmoothLaw",
    "TabularLaw",
    "TextLaw",
    "limits",
    "text_limits",
]

if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = _suggesting_getattr("po.lime", __all__)
