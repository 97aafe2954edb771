"""Draws around rows: perturbations, neighbourhoods, and the regressions on them."""
