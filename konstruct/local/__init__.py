"""The deployment on one machine: embedded Postgres and Valkey, supervised web and workers."""
