"""The papers that are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from papers.engine.paper import ALL, Paper, require_name
from papers.iloco.paper import ILOCO_PAPER
from papers.linear_lime.paper import LINEAR_LIME
from papers.properties.paper import PROPERTIES
from papers.tabular_lime.paper import TABULAR_LIME
from papers.text_lime.paper import TEXT_LIME
from propopt.base.checks import did_you_mean
from propopt.base.errors import InvalidInput


PAPERS: dict[str, Paper] = {
    paper.name: paper
    for paper in (PROPERTIES, TABULAR_LIME, LINEAR_LIME, TEXT_LIME, ILOCO_PAPER)
}


def find_paper(name: str) -> Paper:
    """The paper of this name.

    Raises
    ------
    InvalidInput
        If there is none.

    Examples
    --------
    >>> import papers
    >>> sorted(papers.find_paper("properties").figures)[:3]
    ['appendix', 'errors', 'fig1']
    """
    require_name(name, list(PAPERS), "paper")
    return PAPERS[name]


def read_choice(
    names: Sequence[str], paper: str | None = None
) -> tuple[Paper, tuple[str, ...]]:
    """What is meant by names of figures, before which a paper's name may stand.

    Parameters
    ----------
    names : sequence of str
        Figures; or a paper, then some of its figures, or none for all of them.
    paper : str, optional
        The paper of the figures, where ``names`` does not begin with one; by default
        ``"properties"``.

    Returns
    -------
    Paper, tuple of str
        The paper, and the names of its figures as they were given.

    Raises
    ------
    InvalidInput
        For a paper that is not known, or one that is named twice.

    Examples
    --------
    >>> import papers
    >>> one, figures = papers.read_choice(["tabular-lime"])
    >>> one.name, figures
    ('tabular-lime', ('all',))
    >>> one, figures = papers.read_choice(["fig1", "fig4"])
    >>> one.name, figures
    ('properties', ('fig1', 'fig4'))
    """
    if not names or names[0] not in PAPERS:
        return find_paper(paper or PROPERTIES.name), tuple(names)
    first, *figures = names
    if paper is not None:
        raise InvalidInput(
            f"--paper: the figures are said to be of {first} already; name one paper"
        )
    return PAPERS[first], tuple(figures) or (ALL,)


def read_choices(
    names: Sequence[str], paper: str | None = None
) -> list[tuple[Paper, tuple[str, ...]]]:
    """What is meant by names of figures of several papers, each after its paper.

    Parameters
    ----------
    names : sequence of str
        As in :func:`read_choice`, once or several times.
    paper : str, optional
        See :func:`read_choice`.

    Returns
    -------
    list of (Paper, tuple of str)
        The papers in their order, each with the names of its figures; every paper for
        ``"all"`` alone.

    Raises
    ------
    InvalidInput
        For a paper or a figure that is not known, or a paper that is named twice.

    Examples
    --------
    >>> import papers
    >>> chosen = papers.read_choices(["tabular-lime", "fig7", "linear-lime"])
    >>> [(one.name, figures) for one, figures in chosen]
    [('tabular-lime', ('fig7',)), ('linear-lime', ('all',))]
    """
    if paper is None and list(names) == [ALL]:
        return [(one, (ALL,)) for one in PAPERS.values()]
    starts = [k for k, name in enumerate(names) if k == 0 or name in PAPERS]
    ends = [*starts[1:], len(names)]
    parts = [names[a:b] for a, b in zip(starts, ends, strict=True)] or [names]
    chosen = [read_choice(part, paper) for part in parts]
    user_choices = [one.name for one, _ in chosen]
    for one, figures in chosen:
        if user_choices.count(one.name) > 1:
            raise InvalidInput(f"figures: name the paper {one.name} once")
        _require_figures(one, figures)
    return chosen


def _require_figures(paper: Paper, figures: Sequence[str]) -> None:
    """Refuse names that are no figures of a paper, with the figures of all papers."""
    for name in figures:
        if name in (*paper.figures, ALL):
            continue
        hint = did_you_mean(name, [*paper.figures, ALL])
        homes = [one.name for one in PAPERS.values() if name in one.figures]
        if homes:
            hint = f" (did you mean {homes[0]!r} before it?)"
        every = "; ".join(
            f"{one.name}: {', '.join(one.figures)}" for one in PAPERS.values()
        )
        raise InvalidInput(
            f"figure: there is no {name!r} in {paper.name}{hint}; there are {every}"
        )


def catalogue() -> Iterator[str]:
    """Every paper and its figures, in lines.

    Examples
    --------
    >>> import papers
    >>> [line for line in papers.catalogue() if "SHAP" in line]
    ['  fig4       SHAP beside the others']
    """
    for paper in PAPERS.values():
        yield f"{paper.name}: {paper.title}"
        for name, figure in paper.figures.items():
            yield f"  {name:<11}{figure().title}"
