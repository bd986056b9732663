"""Secrets: the catalog, the sources in order, the scope of each pack, and the mask on everything that leaves."""
