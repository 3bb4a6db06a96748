"""Pages of people: their memories in one place, linked accounts, export and erasure."""
