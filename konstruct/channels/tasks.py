"""Processes events that arrived in channels, and imports the Celery tasks of the channels."""

from konstruct.channels import inbox
from konstruct.channels.slack import inbound  # has the tasks tell_refused and learn_name
from tenants.jobs import Lease

# Functions that make messages of events, by channel.
HANDLERS = {inbound.CHANNEL: inbound.handle}


def process_arrival(lease: Lease) -> None:
    """Process a claimed event."""
    inbox.process(lease, HANDLERS)
