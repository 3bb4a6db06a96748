"""Ask for memories in tests, and read the results."""

from django.test.utils import CaptureQueriesContext

from memory.recall import RecallResult
from memory.recall.policy import RecallPolicy

UNGATED = RecallPolicy(gate=False)
SMALL_TALK = (
    "I had soup for lunch today.",
    "The train to work was late again this morning.",
    "My neighbour is repainting his garage.",
    "We watched an old western on television.",
    "The supermarket has run out of oat milk.",
    "I should really clean the windows soon.",
    "There was a long queue at the post office.",
    "My laptop battery hardly lasts two hours.",
    "They are digging up the street in front of our house.",
    "I forgot my umbrella at the dentist.",
)


def contents(result: RecallResult) -> list[str]:
    return [hit.content for hit in result.hits]


def statements(queries: CaptureQueriesContext) -> list[str]:
    """Return the sent statements without the savepoints of the test's own transaction."""
    sent = [query["sql"] for query in queries.captured_queries]
    return [sql for sql in sent if "SAVEPOINT" not in sql]
