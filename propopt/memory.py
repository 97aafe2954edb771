"""Memory is estimated before it is taken, and refused with the figure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psutil

from propopt.errors import Refused


CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
UNLIMITED = 2.0**60
"""Version 1 has no word for it, but a number of about 2^63."""


def require_memory(n_bytes: float, what: str, instead: str) -> None:
    """Raise :class:`Refused` if ``what`` needs more memory than is free."""
    reason = memory_refusal(n_bytes, what, instead)
    if reason is not None:
        raise Refused(reason)


def memory_refusal(n_bytes: float, what: str, instead: str) -> str | None:
    """Why ``what`` does not fit into memory; None if it does."""
    free = free_memory()
    if n_bytes <= free:
        return None
    return (
        f"{what} needs about {shown_bytes(n_bytes)} and {shown_bytes(free)} are free; "
        f"{instead}"
    )


def shown_bytes(n_bytes: float) -> str:
    """A number of bytes in the largest unit of which there is one.

    Examples
    --------
    >>> shown_bytes(2**31), shown_bytes(1.5 * 2**20), shown_bytes(0)
    ('2.0 GiB', '1.5 MiB', '0 bytes')
    """
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def free_memory() -> float:
    """Bytes that this process may still take, of the machine and by its own limits."""
    machine = float(psutil.virtual_memory().available)
    own = min(_below_address_limit(), _below_cgroup_limits())
    return max(0.0, min(machine, own))


def _below_address_limit() -> float:
    """What ``ulimit -v`` leaves; infinite where there is no such limit."""
    try:
        import resource
    except ImportError:  # Windows has none
        return math.inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return math.inf
    return float(limit - psutil.Process().memory_info().vms)


def _below_cgroup_limits() -> float:
    """What the least generous control group around this process leaves."""
    return min(map(_left_in, _limited_groups(MEMBERSHIP, CGROUPS)), default=math.inf)


@cache
def _limited_groups(membership: Path, cgroups: Path) -> tuple[Path, ...]:
    """Those of our groups that have a limit; read once."""
    groups = dict.fromkeys(_groups(membership, cgroups))
    return tuple(group for group in groups if _limit(group) < UNLIMITED)


def _groups(membership: Path, cgroups: Path) -> Iterator[Path]:
    """Folders of the memory controller, of version 1 or 2, from our group upwards."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:  # not Linux, or no /proc
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = cgroups / "memory" if controllers else cgroups
        group = root / path.lstrip("/")
        # the whole hierarchy binds; in a container our own path may not be mounted
        own = (group, *group.parents)
        yield from (folder for folder in own if root in (folder, *folder.parents))


def _limit(group: Path) -> float:
    limit = _number(group, "memory.max", "memory.limit_in_bytes")
    return math.inf if limit is None else limit


def _left_in(group: Path) -> float:
    used = _number(group, "memory.current", "memory.usage_in_bytes")
    return math.inf if used is None else _limit(group) - used + _reclaimable(group)


def _number(group: Path, *names: str) -> float | None:
    """The number in the first of these files that is there; None for "max" or none."""
    for name in names:
        try:
            return float((group / name).read_text())
        except (OSError, ValueError):
            continue
    return None


def _reclaimable(group: Path) -> float:
    """Bytes of files that are only cached: they are counted as used, and given back."""
    try:
        lines = (group / "memory.stat").read_text().splitlines()
        entries = {name: float(count) for name, count in map(str.split, lines)}
    except (OSError, ValueError):
        return 0.0
    # version 1 counts the groups within only in its totals
    return entries.get("total_inactive_file", entries.get("inactive_file", 0.0))
