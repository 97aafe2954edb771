"""Sums over edges: operator splitting, polished by Newton steps."""
