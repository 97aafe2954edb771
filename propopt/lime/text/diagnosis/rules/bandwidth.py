"""What the bandwidth decides: signs, and whether interactions are seen at all."""

from __future__ import annotations

from typing import Final

import numpy as np

from propopt._typing import Values
from propopt.lime.diagnosis.rule import Checked, Rule
from propopt.lime.text.diagnosis.case import TOO_MANY, TextCase


_OCTAVE: Final = 1.0
_SMALL: Final = 0.01
"""Of the largest coefficient: signs of what is smaller near ν are no news."""


def _check_signs(case: TextCase) -> Checked | str:
    if case.is_long:
        return TOO_MANY
    if not np.isfinite(case.law.bandwidth):
        return "there are no weights"
    if case.limits.standard_errors is not None:
        return "coefficients are estimated"
    widths, path = case.near
    distance = _to_zero(widths / case.law.bandwidth, path)
    most = np.abs(path).max(axis=0)

    def sentence(n: int, j: int) -> str:
        del n
        root = case.law.bandwidth * 2.0 ** distance[j]
        return (
            f"the coefficient of {case.words[j]!r}, {case.beta[j]:.3g} at the "
            f"bandwidth {case.law.bandwidth:.3g}, is zero at {root:.3g} (kernel width "
            f"{100.0 * root:.3g}) and changes its sign there"
        )

    return Checked(
        numbers=np.abs(distance)[None],
        stakes=(most / case.largest)[None],
        sentence=sentence,
        remedy="see the path of coefficients over bandwidths; read no sign here",
        excuses={"it is small all along": (most < _SMALL * case.largest)[None]},
    )


def _to_zero(ratios: Values, path: Values) -> Values:
    """Log2 of the nearest ratio where each coefficient is zero, (d,); else NaN."""
    logs = np.log2(ratios)[:, None]
    before, after = path[:-1], path[1:]
    turned = np.sign(before) * np.sign(after) < 0.0
    step = np.divide(before, before - after, out=np.zeros(before.shape), where=turned)
    roots = np.where(turned, logs[:-1] + step * np.diff(logs, axis=0), np.nan)
    nearest = np.argmin(np.where(turned, np.abs(roots), np.inf), axis=0)
    return np.asarray(roots[nearest, np.arange(path.shape[1])])


SIGNS: Final = Rule(
    name="bandwidth fragility",
    threshold=_OCTAVE,
    below=True,
    weight=0.9,
    check=_check_signs,
)
"""Its number is |log2(root / ν)|, of roots from half to twice ν."""


def _check_leaving_one(case: TextCase) -> Checked | str:
    if case.n_words == 2:
        return "of two words the coefficients are the same at all bandwidths"
    shares = case.law.shares(case.n_words)
    share = shares[-2] / shares.sum()

    def sentence(n: int, j: int) -> str:
        del n, j
        constant = case.at_zero.coefficients[0]
        return (
            f"texts that lose one word have {share:.0%} of the weight: coefficients "
            "say what is lost with one word, and words that do nothing alone are not "
            f"told from those that do (as ν → 0 they are from {constant.min():.3g} to "
            f"{constant.max():.3g}, with a constant that is added to all of them)"
        ).replace("%", " %")

    return Checked(
        numbers=np.array([[share]]),
        stakes=np.ones((1, 1)),
        sentence=sentence,
        remedy="a wider kernel, to see what words do together",
    )


LEAVING_ONE: Final = Rule(
    name="leaving one out",
    threshold=0.8,
    weight=0.9,
    per_row=False,
    per_column=False,
    check=_check_leaving_one,
)
"""Its number is the share of the weight of texts that lose one word."""
