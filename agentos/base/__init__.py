"""What everything else may use: foreign functions called with care, canonical JSON, atomic files, claims."""
