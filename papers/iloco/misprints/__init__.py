"""Where the paper errs, and what it leaves to the reader: each with a number."""
