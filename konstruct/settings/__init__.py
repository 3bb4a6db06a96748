"""All settings, read once from the environment. docs/settings.md describes them."""

import gc

from konstruct.settings.applications import *
from konstruct.settings.deployment import *
from konstruct.settings.processes import *

# Nothing that an application loads is garbage: konstruct.apps enables it when all are loaded.
gc.disable()
