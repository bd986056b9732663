"""OpenAPI documents, and what is there already, as tools."""
