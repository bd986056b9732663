"""The manager: the only one who loads packs and changes stacks, and what it is made of."""
