"""What additive attributions cannot show, in a sentence: what matters jointly."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from propopt._typing import Positions, Truths, Values
from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.output.text import printable
from propopt.results.explanation import Parameter


if TYPE_CHECKING:
    from propopt.interactions.reading.clear import ClearScores
    from propopt.interactions.result import InteractionScores


_MOST_NAMED: Final = 5
"""Sets that are named; of others it is said how many there are."""


def note_on_interactions(
    function: Function, X: Any, result: InteractionScores | None
) -> dict[str, Parameter]:
    """The sentence as the note of an explanation; nothing where no scores are given.

    Parameters
    ----------
    function : Function
        What is explained, which reads names.
    X : array or DataFrame (N, D)
        The rows.
    result : InteractionScores or None
        Of the same features.

    Raises
    ------
    InvalidInput
        If it has other features, or is no result of sets of two or more.
    """
    if result is None:
        return {}
    from propopt.interactions.reading.clear import clear_scores

    clear = clear_scores(result)
    points, labels = function.read(X)
    n_features = points.shape[1]
    names = labels.features if labels.columns is None else labels.columns
    members = explained_members(result, names, n_features)
    own = labels.feature_names(n_features)
    shown = [
        printable(own[places[0]] if len(places) == 1 else name)
        for name, places in zip(result.names, members, strict=True)
    ]
    sets = [" × ".join(shown[place] for place in one) for one in result.sets.tolist()]
    return {"notes": _sentence(clear, sets, result)}


def explained_members(
    result: InteractionScores, names: Sequence[Hashable] | None, n_features: int
) -> list[Positions]:
    """Where the columns of each feature of a result stand among those explained.

    Parameters
    ----------
    result : InteractionScores
        Of sets of two or more.
    names : sequence (D,) or None
        Of what is explained.
    n_features : int
        D.

    Raises
    ------
    InvalidInput
        If the result has other features, or is of single ones.
    """
    from propopt.interactions.reading.alignment import places_of_columns

    if result.order < 2:
        raise InvalidInput(
            "interactions: expected scores of pairs or larger sets, got those of "
            "single features, which attributions show; interactions(order=2) of a "
            "fitted ILOCO gives pairs"
        )
    return places_of_columns(result, names, n_features, "the explained table")


def with_note(
    parameters: Mapping[str, Parameter], note: Mapping[str, Parameter]
) -> dict[str, Parameter]:
    """What an explanation says of itself, with one note more."""
    notes = [str(own["notes"]) for own in (parameters, note) if "notes" in own]
    return {**parameters, **({"notes": "; ".join(notes)} if notes else {})}


def _sentence(
    clear: ClearScores, sets: Sequence[str], result: InteractionScores
) -> str:
    above = _named(clear, sets, clear.above, clear.estimates)
    below = _named(clear, sets, clear.below, -clear.estimates)
    parts = []
    if above:
        parts.append(f"{above} matter jointly, which no additive attribution can show")
    if below and result.order == 2:
        parts.append(
            f"{below} stand in for each other, so that another fit may divide their "
            "attributions otherwise where they are correlated"
        )
    if not parts:
        parts.append(f"of {len(sets):,} sets of features none clearly matters jointly")
    return (
        f"interactions (iLOCO of learners that were fitted again, in "
        f"{printable(result.units)}, {clear.in_words}): {', and '.join(parts)}"
    )


def _named(clear: ClearScores, sets: Sequence[str], own: Truths, sizes: Values) -> str:
    """The largest of some sets with their scores, and how many more there are."""
    places: Positions = np.flatnonzero(own)
    order = places[np.argsort(-sizes[places], kind="stable")]
    words = [f"{sets[q]} ({clear.estimates[q]:.3g})" for q in order[:_MOST_NAMED]]
    if len(order) > _MOST_NAMED:
        words.append(f"{len(order) - _MOST_NAMED:,} more")
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
