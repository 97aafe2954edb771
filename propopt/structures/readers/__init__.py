"""Families of fitted estimators, read into networks and links: a file for each."""
