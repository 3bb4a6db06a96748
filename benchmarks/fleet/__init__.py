"""Many tenants: making, migrating, moving and erasing them, and what one costs the others."""
