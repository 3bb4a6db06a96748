"""Lists: how they are paged, and what they can be narrowed by."""
