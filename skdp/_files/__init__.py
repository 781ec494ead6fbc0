"""Tables, models and reports as files."""
