"""Drop-in modules with the names, parameters and conventions of other libraries."""
