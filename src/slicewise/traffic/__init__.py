"""How a plan behaves under load: requests, servers' policies, an event engine, and what users feel."""
