"""Mardaoui and Garreau, An Analysis of LIME for Text Data."""
