"""What is wrong with a host, each trouble with its cure: for `host.check()` and `agentos doctor`."""
