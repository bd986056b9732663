"""Loading packs in a process of their own."""
