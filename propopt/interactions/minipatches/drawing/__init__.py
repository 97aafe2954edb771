"""Which rows and features patches have, and whether they are enough."""
