"""Squared losses and ℓ1: a proximal path with Newton steps."""
