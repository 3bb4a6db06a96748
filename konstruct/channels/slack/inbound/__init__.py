"""From a signed request of Slack's to a message, or to a decision by a button."""
