"""Facts: kept, listed, found and changed."""
