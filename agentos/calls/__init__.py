"""What happens to a call, from its name to its one result."""
