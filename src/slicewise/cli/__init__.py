"""The command line: a thin face. Each command reads its words, calls the library and shows the result."""
