"""The command `agentos`, and the pictures it draws. Everything here needs the extra `cli`."""
