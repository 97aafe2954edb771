"""What LIME tends to at given rows, as a result: tables, cards, files.

- :class:`~propopt.lime.explanation.result.LimeExplanation`: the result.
- :class:`~propopt.lime.explanation.subject.LimeSubject`: the model and the law behind
  it, which are not saved.
"""

from propopt.lime.explanation.result import LimeExplanation
from propopt.lime.explanation.subject import LimeSubject


__all__ = ["LimeExplanation", "LimeSubject"]
