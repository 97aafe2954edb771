"""Coefficients as functions of the kernel width, and of the bin of the row.

- :func:`~propopt.lime.paths.path.bandwidth_path`: a
  :class:`~propopt.lime.paths.path.BandwidthPath`, exact at each width.
"""

from propopt.lime.paths.path import BandwidthPath, bandwidth_path, default_widths


__all__ = ["BandwidthPath", "bandwidth_path", "default_widths"]
