"""The planner over HTTP: the command line's words in, its JSON out, and the page that shows it."""
