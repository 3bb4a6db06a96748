"""Database backend that sends each statement together with its schema and tenant."""
