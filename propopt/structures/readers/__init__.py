"""Fitted estimators, read into networks, products and boxes."""
