"""What LIME on texts tends to, as a result: tables, cards, files.

- :class:`~propopt.lime.text.explanation.result.TextLimeExplanation`: the result;
  :class:`~propopt.lime.text.explanation.row.DocumentLimits`: of one document;
- :class:`~propopt.lime.text.explanation.subject.TextSubject`: the model behind it,
  which is not saved.
"""

from propopt.lime.text.explanation.result import TextLimeExplanation
from propopt.lime.text.explanation.row import DocumentLimits
from propopt.lime.text.explanation.subject import TextSubject


__all__ = ["DocumentLimits", "TextLimeExplanation", "TextSubject"]
