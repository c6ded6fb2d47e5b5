"""The explorer's document: everything that its page and its report show of one question, as plain data."""
