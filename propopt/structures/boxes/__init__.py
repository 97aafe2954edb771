"""Sums of boxes: what trees are."""
