"""What coefficients of LIME hide, by rules, each with a number and a threshold.

- :class:`~propopt.lime.diagnosis.result.LimeDiagnosis`: what was looked for and found.
- :class:`~propopt.lime.diagnosis.rule.Rule`: one thing to look for; all are in
  :mod:`propopt.lime.diagnosis.rules`.
"""

from propopt.lime.diagnosis.finding import LimeFinding, QuietRule
from propopt.lime.diagnosis.result import LimeDiagnosis, diagnose


__all__ = ["LimeDiagnosis", "LimeFinding", "QuietRule", "diagnose"]
