"""What a pack's tools could say better."""
