"""Pages of people: their memories in one place, linked accounts, export and erasure."""

from konstruct.admin.people import identities, people

__all__ = ["identities", "people"]
