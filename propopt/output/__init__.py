"""What is written and shown: files, archives, pages, text, streams, progress."""
