"""Each change to another package, in a file named after what it changes."""
