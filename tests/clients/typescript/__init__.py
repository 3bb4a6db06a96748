"""Types that TypeScript programs make of the API's description."""
