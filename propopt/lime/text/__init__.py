"""What LIME on texts tends to, exactly.

- :class:`~propopt.lime.text.law.TextLaw`: how words are deleted, and the weights.
- :class:`~propopt.lime.text.limits.ExactWordLimits`: coefficients of infinitely many
  samples, :class:`~propopt.lime.text.limits.WordLimits`;
- :func:`~propopt.lime.text.explainer.text_limits`: from a model and documents to a
  :class:`~propopt.lime.text.explanation.result.TextLimeExplanation`.
- :class:`~propopt.lime.text.moments.TextMoments`: the constants of the paper, α, c_d
  and σ, Σ and Σ⁻¹, norms, and the share of samples that count.
- :func:`~propopt.lime.text.tfidf_rule.tfidf_factor`: the rule for linear models behind
  tf-idf, an approximation.
"""

from propopt.lime.text.explainer import text_limits
from propopt.lime.text.explanation import TextLimeExplanation
from propopt.lime.text.law import TextLaw
from propopt.lime.text.limits import ExactWordLimits, WordLimits
from propopt.lime.text.moments import Sigmas, TextMoments
from propopt.lime.text.tfidf_rule import tfidf_factor


__all__ = [
    "ExactWordLimits",
    "Sigmas",
    "TextLaw",
    "TextLimeExplanation",
    "TextMoments",
    "WordLimits",
    "text_limits",
    "tfidf_factor",
]
