"""Bases of similar features, in which the features of an explanation decouple."""
