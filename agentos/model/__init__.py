"""Frozen values: what packs, manifests and operators say. Nothing here acts."""
