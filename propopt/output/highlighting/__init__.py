"""Texts whose words have shades, as HTML: escaped, without scripts, for any reader.

The text is shown as it is, with ends of lines and from right to left where it is
written so; characters that are not seen, turn the direction of writing or act on a
terminal have a visible escape instead. Below it stands a table of the numbers.

- :class:`~propopt.output.highlighting.marked.MarkedText`: a text and its numbers;
- :func:`~propopt.output.highlighting.page.highlighted`: several of them, as
  :class:`~propopt.output.highlighting.page.HighlightedText`.
"""

from propopt.output.highlighting.marked import MarkedText
from propopt.output.highlighting.page import HighlightedText, highlighted


__all__ = ["HighlightedText", "MarkedText", "highlighted"]
