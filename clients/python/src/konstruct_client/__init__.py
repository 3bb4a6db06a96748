"""Client of Konstruct, in which AI agents remember.

```python
from konstruct_client import Client

with Client("http://localhost:8000", "ks_…") as konstruct:
    konstruct.facts.create("Maria is allergic to walnuts.", agent="Ada", user_id="maria")
```
"""

from konstruct_client._calls import Page
from konstruct_client._pages import AsyncPages, Pages
from konstruct_client._streams import AsyncStream, Stream
from konstruct_client._version import __version__
from konstruct_client.client import AsyncClient, Client
from konstruct_client.errors import ConnectionFailed, KonstructError, Problem, TimedOut

__all__ = [
    "AsyncClient",
    "AsyncPages",
    "AsyncStream",
    "Client",
    "ConnectionFailed",
    "KonstructError",
    "Page",
    "Pages",
    "Problem",
    "Stream",
    "TimedOut",
    "__version__",
]
