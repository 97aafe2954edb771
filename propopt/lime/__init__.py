"""What LIME converges to, exactly, and what its coefficients hide.

:func:`limits` explains rows of a table by what the coefficients of LIME tend to, and
:class:`LimeExplainer` reads a model once for rows that come one by one; its
:class:`LimeExplanation` knows their noise and paths, and its ``diagnose()``, a
:class:`LimeDiagnosis`, what they hide.

Laws say how LIME draws, codes and weights samples; each is a :class:`LimeLaw`:

- :class:`TabularLaw`: bins, weighted by bits, as in the package ``lime``;
- :class:`SmoothLaw`: the same bins, weighted by distance along a :class:`Polyline` of
  each column;
- :class:`GaussianLaw`: normal samples, weighted by distance;
- :class:`GlimeLaw`: any other, drawn from its weighted neighbourhood.

:func:`default_kernel_width` is the width where none is given.

Texts have words: :func:`text_limits` explains documents, as a
:class:`TextLimeExplanation`; :class:`TextLaw` says how words are deleted, and
:class:`TextMoments` has its constants.

What n samples make of the limits: :func:`compare_with_package` holds runs of ``lime``
against them, a :class:`PackageComparison`, :func:`compare_text_with_package` those on
texts.

Of linear functions under normal samples all is known in closed form: :func:`gains` (a
:class:`Gains`) and :func:`critical_bandwidths` (:class:`CriticalBandwidths`).
"""

from propopt.lime.diagnosis.diagnosis import LimeDiagnosis
from propopt.lime.explaining_rows import LimeExplainer, limits
from propopt.lime.explanation import LimeExplanation
from propopt.lime.gaussian_theory import (
    CriticalBandwidths,
    Gains,
    critical_bandwidths,
    gains,
)
from propopt.lime.laws.gaussian_law import GaussianLaw
from propopt.lime.laws.lime_law import GlimeLaw, LimeLaw, default_kernel_width
from propopt.lime.laws.smooth_law import Polyline, SmoothLaw
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.lime.package_runs import PackageComparison, compare_with_package
from propopt.lime.text.explaining_texts import text_limits
from propopt.lime.text.text_explanation import TextLimeExplanation
from propopt.lime.text.text_package import compare_text_with_package
from propopt.lime.text.text_reading import TextLaw, TextMoments


__all__ = [
    "CriticalBandwidths",
    "Gains",
    "GaussianLaw",
    "GlimeLaw",
    "LimeDiagnosis",
    "LimeExplainer",
    "LimeExplanation",
    "LimeLaw",
    "PackageComparison",
    "Polyline",
    "SmoothLaw",
    "TabularLaw",
    "TextLaw",
    "TextLimeExplanation",
    "TextMoments",
    "compare_text_with_package",
    "compare_with_package",
    "critical_bandwidths",
    "default_kernel_width",
    "gains",
    "limits",
    "text_limits",
]
