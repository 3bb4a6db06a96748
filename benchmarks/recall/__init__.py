"""What recall finds, what it costs, and the fitting of its gate."""
