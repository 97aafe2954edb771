"""Sums of boxes, the exact structure of trees."""
