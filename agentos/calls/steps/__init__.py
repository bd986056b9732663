"""What happens to a call, one function for each step; `calls.pipeline` has their order."""
