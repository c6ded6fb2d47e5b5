"""Views of results: documents in text, Markdown and CSV, derivations, and figures."""
