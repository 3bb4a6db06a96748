"""End users: their ids, and what waits for a person: escalations and consent."""
