"""JSON Schema of Python types, and values checked, completed and built by it."""
