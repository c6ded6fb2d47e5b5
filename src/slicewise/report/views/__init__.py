"""Documents of results, one file a command."""
