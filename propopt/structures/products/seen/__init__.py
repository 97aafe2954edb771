"""Sums of products of what a model sees, by the columns of the table."""
