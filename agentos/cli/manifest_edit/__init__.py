"""Edits of a person's manifest that leave everything else as it was written."""
