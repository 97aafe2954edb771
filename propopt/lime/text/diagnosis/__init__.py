"""What coefficients of LIME on texts hide, by rules with numbers.

- :func:`~propopt.lime.text.diagnosis.diagnosed.diagnose_texts`: all rules, on all
  documents; :mod:`propopt.lime.text.diagnosis.rules` has them.
- :class:`~propopt.lime.text.diagnosis.seen.SeenWords`: how the words of a document are
  features of the model.
"""

from propopt.lime.text.diagnosis.diagnosed import diagnose_texts
from propopt.lime.text.diagnosis.seen import SeenWords


__all__ = ["SeenWords", "diagnose_texts"]
