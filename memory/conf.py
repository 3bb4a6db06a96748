"""Every number that memory is tuned by, with its reason. Operators' are in `konstruct.settings`."""

from datetime import timedelta
from typing import Final

# The column is vector(384): a model with another size needs other tables.
EMBEDDING_DIMENSIONS: Final = 384

# --- Short-term window (contract B) --------------------------------------------------------------

WINDOW: Final = 20
# Imported turns belong to the window, though no agent here answered them.
IMPORT_CHANNEL: Final = "import"
# Texts of `store_embedding` are messages of this channel. They are recalled like any message, they
# have no reply, and they are not in the window.
STORED_CHANNEL: Final = "stored"
# Bytes of a message's metadata as JSON: labels, not documents.
MAX_MESSAGE_METADATA: Final = 8_192

# --- Vector search (contract C; sizes and times from docs/decisions) -----------------------------

TOP_K: Final = 3
THRESHOLD: Final = 0.75
# Up to this many rows of one agent and user every vector is compared: 13 ms at 10,000 rows.
EXACT_ROWS: Final = 20_000
# Above it HNSW is walked until enough rows of the scope were met. Candidates are fetched in plenty
# and ordered by their true distance: relaxed order alone found .77 at 10,000 rows.
HNSW_EF_SEARCH: Final = 200
HNSW_CANDIDATES_PER_ROW: Final = 10
HNSW_MAX_SCAN_TUPLES: Final = 100_000
# Cosine distances are sums of single-precision products.
DISTANCE_TOLERANCE: Final = 1e-6

# --- Embedding ----------------------------------------------------------------------------------

# Word pieces of a batch (benchmarks/writing/embedding.py).
EMBED_BATCH_TOKENS: Final = 512
# Another batch costs as much as about so many word pieces.
EMBED_BATCH_PADDING: Final = 40

# --- Outbox -------------------------------------------------------------------------------------

# Messages that are embedded and written in one transaction.
OUTBOX_BATCH: Final = 256
# Messages per task, so that one tenant's import does not keep the others waiting.
OUTBOX_TASK_LIMIT: Final = 1024
# The head start of the task that is enqueued with a message, before the sweeper enqueues another.
OUTBOX_GRACE: Final = timedelta(seconds=5)
# A job that began so long ago and has not finished is retried alone, like one that failed.
OUTBOX_SUSPECT: Final = timedelta(minutes=1)

# --- Facts --------------------------------------------------------------------------------------

# From this cosine similarity on, a new fact is reported as a near duplicate of an active one. Of
# pairs of short facts that we tried, those that say the same have .85 to .99 ("lives in", "is
# living in": .97), those that contradict each other .62 to .91 ("likes tea", "likes no tea": .85).
NEAR_DUPLICATE: Final = 0.9
# Facts less like a message than this stay out of its prompt. benchmarks/recall/fact_floor.py: of
# facts that matter to a message .18 keeps 85 of 100, of those that do not 8, and 4 for small talk.
FACT_FLOOR: Final = 0.18
# The nearest facts need only this. How alike two texts are depends on how long they are and how
# they are put, more than which fact is nearest: of facts that matter, all are among the four
# nearest. With three from .10 on, a prompt tells 96 of 100 that matter, and 13 of those that do
# not; a floor of .12 for all tells 94 and 16.
NEAR_FACTS: Final = 3
NEAR_FACT_FLOOR: Final = 0.10
# A person who searches sees messages without a word of the query, and facts, from this cosine on.
# Words without a meaning ("xyzzy", "foo") have up to .24 with short texts; "illness" has .32 with a
# text about a fever, "travel plans" .34 with one about a flight.
SEARCH_FLOOR: Final = 0.28

# Replaces an erased text that recall events and prompts of others quote.
ERASED_TEXT: Final = "(erased)"
