"""From a reply to posts in Slack: their text, and how they are made, changed and found again."""
