"""Scores as tables, words, cards and files."""
