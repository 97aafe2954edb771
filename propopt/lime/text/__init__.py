"""What LIME on texts tends to, exactly.

- :class:`~propopt.lime.text.law.TextLaw`: how words are deleted, and the weights.
- :class:`~propopt.lime.text.limits.ExactWordLimits`: coefficients of infinitely many
  samples, :class:`~propopt.lime.text.limits.WordLimits`.
"""

from propopt.lime.text.law import TextLaw
from propopt.lime.text.limits import ExactWordLimits, WordLimits


__all__ = ["ExactWordLimits", "TextLaw", "WordLimits"]
