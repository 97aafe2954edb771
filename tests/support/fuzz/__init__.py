"""Random problem files and tables."""
