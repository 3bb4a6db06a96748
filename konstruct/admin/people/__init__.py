"""Pages of people: their memories in one place, linked accounts, export and erasure."""

from konstruct.admin.people import erasures, identities, person, receipts, users

__all__ = ["erasures", "identities", "person", "receipts", "users"]
