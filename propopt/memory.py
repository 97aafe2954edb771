"""Memory is estimated before it is taken, and refused with the figure."""

from __future__ import annotations

import psutil

from propopt.errors import Refused


def require_memory(n_bytes: float, what: str, instead: str) -> None:
    """Raise :class:`Refused` if ``what`` needs more memory than is free."""
    reason = memory_refusal(n_bytes, what, instead)
    if reason is not None:
        raise Refused(reason)


def memory_refusal(n_bytes: float, what: str, instead: str) -> str | None:
    """Why ``what`` does not fit into memory; None if it does."""
    free = psutil.virtual_memory().available
    if n_bytes <= free:
        return None
    return (
        f"{what} needs about {n_bytes / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are "
        f"free; {instead}"
    )
