"""Sums of products of functions of one column each."""
