"""Forms made of JSON Schema: a tree of fields out of a schema and values, and what was submitted back into arguments.

form_shapes    what a place may hold: one shape, or several to choose from
form_entries   what was entered: values, and what is no value yet; submitted pairs into entries
form_fields    fields out of a schema and entries, for the templates to draw
"""
