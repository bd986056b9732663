"""Patterns over the arguments of a call, and the rules that say by them whether a person is asked."""
