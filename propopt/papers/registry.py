"""The papers that are known."""

from propopt.papers.properties.paper import PROPERTIES
from propopt.reproduce.paper import Paper, require_name


PAPERS: dict[str, Paper] = {paper.name: paper for paper in (PROPERTIES,)}


def find_paper(name: str) -> Paper:
    """The paper of this name.

    Raises
    ------
    InvalidInput
        If there is none.

    Examples
    --------
    >>> import propopt as po
    >>> sorted(po.papers.find_paper("properties").figures)[:3]
    ['appendix', 'fig1', 'fig2']
    """
    require_name(name, list(PAPERS), "paper")
    return PAPERS[name]
