"""Tools: written in a minute, validated, executed, one result for every call."""
