"""How well a surrogate on bits follows its function, and where it gets it from.

- :func:`~propopt.lime.fidelity.effective.effective_share`: samples that count.
"""

from propopt.lime.fidelity.effective import effective_share, log_mean_weight


__all__ = ["effective_share", "log_mean_weight"]
