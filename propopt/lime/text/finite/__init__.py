"""What n samples make of limits on texts: ridge, the document itself, noise.

- :func:`~propopt.lime.text.finite.expected.expected_run`: what the package ``lime``
  gives in the mean of runs, :class:`~propopt.lime.text.finite.expected.ExpectedWords`;
  :func:`~propopt.lime.text.finite.leverage.effective_log_weights`: what samples count.
- :func:`~propopt.lime.text.finite.noise.single_text_run`: how a run scatters around
  that, from known values where these are
  :class:`~propopt.lime.text.finite.draws.WordDraws`.
- :func:`~propopt.lime.text.finite.package_runs.compare_text_with_package`: runs of the
  package.
- :func:`~propopt.lime.text.finite.selection.kept_words`: which words a choice keeps.
"""

from propopt.lime.text.finite.draws import WordDraws
from propopt.lime.text.finite.expected import ExpectedWords, expected_run
from propopt.lime.text.finite.leverage import effective_log_weights
from propopt.lime.text.finite.noise import single_text_run
from propopt.lime.text.finite.package_runs import compare_text_with_package
from propopt.lime.text.finite.selection import kept_words


__all__ = [
    "ExpectedWords",
    "WordDraws",
    "compare_text_with_package",
    "effective_log_weights",
    "expected_run",
    "kept_words",
    "single_text_run",
]
