"""Families of functions of one column: the factors of products."""
