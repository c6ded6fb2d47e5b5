"""Which to take: questions in people's words become specs, specs become numbers, numbers become a choice."""
