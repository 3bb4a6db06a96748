"""Pages of work in progress: replies, deliveries, extractions, tool calls, escalations."""
