"""What figures of papers on LIME share: runs of it, their statements and charts."""
