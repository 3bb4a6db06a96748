"""Ways in and out: each channel makes messages of what it is told, and shows what comes of them.

In: rest.py; slack.py, and the inbox in arrivals.py. Out: the outbox in deliveries.py, and
delivering.py. What only Slack needs is in slack_*.py.
"""
