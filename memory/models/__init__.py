"""Tables of a tenant's memory, with their querysets."""

from memory.models.attributes import *
from memory.models.conversations import *
from memory.models.facts import *
from memory.models.recall import *
