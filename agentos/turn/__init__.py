"""A turn with a model."""
