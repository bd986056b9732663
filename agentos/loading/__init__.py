"""From what a manifest names to a pack: a factory, a module or a package."""
