"""What LIME converges to, exactly, and what its coefficients hide.

:class:`TabularLaw` says how tabular LIME draws, codes and weights samples;
:func:`default_kernel_width` is the width that it has where none is given, and
:class:`SmoothLaw` weights by distance, along a :class:`Polyline` of each column. With
:class:`GaussianLaw` samples are normal and weighted by distance, and :func:`gains`,
:func:`critical_bandwidths` and :func:`local_error` say what becomes of slopes.
"""

from propopt.lime.diagnosis import LimeDiagnosis
from propopt.lime.explainer import limits
from propopt.lime.explanation import LimeExplanation
from propopt.lime.finite import (
    PackageComparison,
    compare_with_package,
    stability_factor,
    tabular_theorem_samples,
)
from propopt.lime.gaussian import (
    CriticalBandwidths,
    Gains,
    LinearTheorem,
    LocalError,
    critical_bandwidths,
    gains,
    linear_noise,
    linear_theorem_samples,
    local_error,
)
from propopt.lime.laws import GaussianLaw, GlimeLaw, Polyline, SmoothLaw, TabularLaw
from propopt.lime.laws.widths import default_kernel_width


__all__ = [
    "CriticalBandwidths",
    "Gains",
    "GaussianLaw",
    "GlimeLaw",
    "LimeDiagnosis",
    "LimeExplanation",
    "LinearTheorem",
    "LocalError",
    "PackageComparison",
    "Polyline",
    "SmoothLaw",
    "TabularLaw",
    "compare_with_package",
    "critical_bandwidths",
    "default_kernel_width",
    "gains",
    "limits",
    "linear_noise",
    "linear_theorem_samples",
    "local_error",
    "stability_factor",
    "tabular_theorem_samples",
]
