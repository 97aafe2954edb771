"""The job of ``lime``: on tables, and on documents."""
