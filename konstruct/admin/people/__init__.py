"""Pages of people: their memories in one place, linked accounts, export and erasure."""

from konstruct.admin.people import identities, users

__all__ = ["identities", "users"]
