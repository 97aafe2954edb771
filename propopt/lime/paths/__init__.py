"""Coefficients as functions of the kernel width, and of the bin of the row.

- :func:`~propopt.lime.paths.path.bandwidth_path`: a
  :class:`~propopt.lime.paths.path.BandwidthPath`, exact at each width.
- :func:`~propopt.lime.paths.sign_changes.sign_changes`: all widths at which
  coefficients are zero, as :class:`~propopt.lime.paths.sign_changes.SignChanges`.
- :func:`~propopt.lime.paths.profile.bin_profiles`: means by the bin of one column, a
  :class:`~propopt.lime.paths.profile.BinProfile` each.
"""

from propopt.lime.laws.in_bins import binned_columns
from propopt.lime.paths.path import (
    BandwidthPath,
    bandwidth_path,
    default_widths,
    read_widths,
)
from propopt.lime.paths.profile import BinProfile, bin_profiles
from propopt.lime.paths.sign_changes import ColumnRoots, SignChanges, sign_changes


__all__ = [
    "BandwidthPath",
    "BinProfile",
    "ColumnRoots",
    "SignChanges",
    "bandwidth_path",
    "bin_profiles",
    "binned_columns",
    "default_widths",
    "read_widths",
    "sign_changes",
]
