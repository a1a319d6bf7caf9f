"""Pure functions over strings."""
