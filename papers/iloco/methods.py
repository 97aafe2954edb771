"""The methods that are compared: their names, settings and looks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from sklearn.exceptions import ConvergenceWarning

from papers.iloco.comparisons import faith_shap, h_statistic
from propopt.base.errors import FewPatchesWarning
from propopt.interactions import DataSplit, Minipatches


SPLIT: Final = "iLOCO-Split"
FIFTH: Final = "iLOCO-MP, m = 20% M"
HALF: Final = "iLOCO-MP, m = 50% M"
H: Final = "H-statistic"
FAITH: Final = "Faith-Shap"
PAIRS: Final = "iLOCO of pairs"
TRIPLES: Final = "iLOCO of triples"
RIVALS: Final = (H, FAITH)
LOOKS: Final[Mapping[str, tuple[str, str]]] = {
    SPLIT: ("#1f4e79", "-"),
    FIFTH: ("#c0392b", "-"),
    HALF: ("#c0392b", "--"),
    H: ("#2e7d32", ":"),
    FAITH: ("#dd8452", "-."),
    PAIRS: ("#1f4e79", "-"),
    TRIPLES: ("#c0392b", "--"),
}
"""Colour and line of each."""

COMPARED: Final[Mapping[str, Callable[..., Any]]] = {
    H: partial(h_statistic, n_rows=20, n_background=20),
    FAITH: partial(faith_shap, n_rows=6, n_background=10),
}
"""Of a fitted learner."""


def schemes(n_patches: int) -> dict[str, DataSplit | Minipatches]:
    """Those of the paper, and patches of half of the features.

    There pairs are together in ten times as many patches, so that a third of them do.
    """
    return {
        SPLIT: DataSplit(),
        FIFTH: Minipatches(n_patches=n_patches, n_features=0.2, columns="fixed"),
        HALF: Minipatches(n_patches=n_patches // 3, n_features=0.5, columns="fixed"),
    }


def with_seed(learner: Any, seed: int) -> Any:
    """The same learner; what it draws has this seed, if it draws."""
    if "random_state" in learner.get_params():
        return learner.set_params(random_state=seed)
    return learner


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings of what is so on purpose, and told in the pages.

    Networks stop after the steps that they are given, and patches are few.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FewPatchesWarning)
        yield
