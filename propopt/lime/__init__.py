"""The coefficients that LIME converges to, without sampling, and their diagnosis.

:func:`limits` explains rows of a table by the limits of LIME's coefficients, and
:class:`LimeExplainer` prepares a model once for rows that arrive one by one. Both
return :class:`LimeRows` with the noise of single runs and paths over kernel widths. Its
``diagnose()``, a :class:`LimeDiagnosis`, finds misleading coefficients.

A :class:`LimeLaw` is how LIME draws, codes and weights samples:

- :class:`TabularLaw`: bins between quantiles or given edges, with weights by bits, as
  in the package ``lime``;
- :class:`GaussianLaw`: normal samples, with weights by distance;
- :class:`GlimeLaw`: any other law, sampled from its weighted neighbourhood.

Texts have words: :func:`text_limits` explains documents, as :class:`LimeDocuments`;
:class:`TextLaw` says how words are deleted. Both results are a
:class:`LimeExplanation`.
"""

from typing import TYPE_CHECKING

from propopt.base.suggestions import suggesting_getattr as _suggesting_getattr
from propopt.lime.diagnosis.diagnosis import LimeDiagnosis
from propopt.lime.documents import LimeDocuments
from propopt.lime.explaining import LimeExplainer, limits, text_limits
from propopt.lime.explanation import LimeExplanation
from propopt.lime.laws.gaussian_law import GaussianLaw
from propopt.lime.laws.lime_law import GlimeLaw, LimeLaw
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.lime.plots import LimePlots
from propopt.lime.rows import LimeRows
from propopt.lime.text.word_limits import TextLaw


__all__ = [
    "GaussianLaw",
    "GlimeLaw",
    "LimeDiagnosis",
    "LimeDocuments",
    "LimeExplainer",
    "LimeExplanation",
    "LimeLaw",
    "LimePlots",
    "LimeRows",
    "TabularLaw",
    "TextLaw",
    "limits",
    "text_limits",
]

if not TYPE_CHECKING:  # for which every name would be an object
    __getattr__ = _suggesting_getattr("po.lime", __all__)
