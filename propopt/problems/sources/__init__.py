"""Where a problem was described, in a file or in Python: for messages with places."""
