"""The SQLite file of an archive: connections, transactions, schema, checks of foreign files."""
