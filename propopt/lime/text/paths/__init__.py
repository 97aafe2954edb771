"""Coefficients of words as functions of the bandwidth.

- :func:`~propopt.lime.text.paths.path.word_path`: a
  :class:`~propopt.lime.text.paths.path.WordPath`, exact at each bandwidth, with its
  limits at 0 and infinity and all bandwidths at which coefficients change their sign.
"""

from propopt.lime.text.paths.path import WordPath, word_path


__all__ = ["WordPath", "word_path"]
