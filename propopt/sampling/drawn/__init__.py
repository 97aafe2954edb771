"""Attributions under a law, estimated from draws, with blocks that tell their error.

- :class:`~propopt.sampling.drawn.design.Design`: what is drawn around which rows;
  :class:`~propopt.sampling.drawn.design.Control`: what is taken off.
- :class:`~propopt.sampling.drawn.sample.Sample`: draws and values, which can grow.

``collected`` evaluates; ``fitted``, ``cross_fitting`` and ``pair_sums`` are the
estimates, ``other_values`` the pairs and ``uniforms`` the streams.
"""

from propopt.sampling.drawn.design import Control, Design
from propopt.sampling.drawn.sample import Sample


__all__ = ["Control", "Design", "Sample"]
