"""Pages of people: their memories in one place, linked accounts, export and erasure."""

from konstruct.admin.people import erasures, identities, users

__all__ = ["erasures", "identities", "users"]
