"""Coefficients as functions of the kernel width, and of the bin of the row.

- :func:`~propopt.lime.paths.path.bandwidth_path`: a
  :class:`~propopt.lime.paths.path.BandwidthPath`, exact at each width.
- :func:`~propopt.lime.paths.sign_changes.sign_changes`: all widths at which
  coefficients are zero, as :class:`~propopt.lime.paths.sign_changes.SignChanges`.
"""

from propopt.lime.paths.path import BandwidthPath, bandwidth_path, default_widths
from propopt.lime.paths.sign_changes import ColumnRoots, SignChanges, sign_changes


__all__ = [
    "BandwidthPath",
    "ColumnRoots",
    "SignChanges",
    "bandwidth_path",
    "default_widths",
    "sign_changes",
]
