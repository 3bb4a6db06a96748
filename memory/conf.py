"""The tuning constants of memory, with their reasons. Operators' settings: `konstruct.settings`."""

from datetime import timedelta
from typing import Final

# The column is vector(384): a model with another size needs other tables.
EMBEDDING_DIMENSIONS: Final = 384

# --- Short-term window (contract B) --------------------------------------------------------------

WINDOW: Final = 20
# Imported turns belong to the window, although no agent answered them here.
IMPORT_CHANNEL: Final = "import"
# Copies of turns for an agent that has answered in another agent's thread.
HANDOVER_CHANNEL: Final = "handover"
HISTORY_CHANNELS: Final = (IMPORT_CHANNEL, HANDOVER_CHANNEL)
# Texts of `store_embedding` are messages of this channel. They are recalled like any message, they
# have no reply, and they are not in the window.
STORED_CHANNEL: Final = "stored"
# Messages of these channels are not answered.
UNANSWERED_CHANNELS: Final = (*HISTORY_CHANNELS, STORED_CHANNEL)
# Bytes of a message's metadata as JSON: labels, not documents.
MAX_MESSAGE_METADATA_BYTES: Final = 8_192

# --- Vector search (contract C; sizes and times from docs/decisions) -----------------------------

TOP_K: Final = 3
THRESHOLD: Final = 0.75
# At most this many rows of one agent and user are compared one by one: 13 ms at 10,000 rows.
EXACT_ROWS: Final = 20_000
# Above it HNSW is scanned until enough rows of the scope are found. More candidates than needed are
# fetched and sorted by their exact distance: relaxed order alone found .77 at 10,000 rows.
HNSW_EF_SEARCH: Final = 200
HNSW_CANDIDATES_PER_ROW: Final = 10
HNSW_MAX_SCAN_TUPLES: Final = 100_000
# Cosine distances are sums of single-precision products.
DISTANCE_TOLERANCE: Final = 1e-6

# --- Embedding ----------------------------------------------------------------------------------

# Word pieces of a batch (benchmarks/writing/embedding.py).
EMBED_BATCH_TOKENS: Final = 512
# The cost of a further batch, in word pieces.
EMBED_BATCH_PADDING: Final = 40

# --- Outbox -------------------------------------------------------------------------------------

# Messages that are embedded and written in one transaction.
OUTBOX_BATCH: Final = 256
# Messages per task, so that one tenant's import does not keep the others waiting.
OUTBOX_TASK_LIMIT: Final = 1024
# Delay of the sweep, so that the task that is enqueued with a message comes first.
OUTBOX_GRACE: Final = timedelta(seconds=5)

# --- Facts --------------------------------------------------------------------------------------

# From this cosine similarity on, a new fact is reported as a near duplicate of an active one. Of
# the tried pairs of short facts, equivalent ones have .85 to .99 ("lives in", "is living in": .97),
# contradicting ones .62 to .91 ("likes tea", "likes no tea": .85).
NEAR_DUPLICATE: Final = 0.9
# Facts below this similarity to a message stay out of its prompt. benchmarks/recall/fact_floor.py:
# .18 keeps 85 of 100 relevant facts, 8 of 100 irrelevant ones, and 4 for small talk.
FACT_FLOOR: Final = 0.18
# The floor of the NEAR_FACTS nearest facts. Similarity depends on the length and wording of the two
# texts more than the order of facts does: all relevant facts are among the four nearest. With three
# from .10 on, a prompt has 96 of 100 relevant facts and 13 of the irrelevant ones; a floor of .12
# for all gives 94 and 16.
NEAR_FACTS: Final = 3
NEAR_FACT_FLOOR: Final = 0.10
# A prompt of a chat has all facts about a user with at most this many, and of other users those
# with these slots.
SMALL_SET: Final = 8
PREFERENCE_SLOTS: Final = r"allerg|intoleran|diet|prefer"
# A person's search shows messages without a word of the query, and facts, from this cosine on.
# Words without a meaning ("xyzzy", "foo") have up to .24 with short texts; "illness" has .32 with a
# text about a fever, "travel plans" .34 with one about a flight.
SEARCH_FLOOR: Final = 0.28

# Every answer of the built-in responder has this text; recall does not return them.
RESPONDER_MARK: Final = "(Built-in responder, not a language model.)"
# What a prompt shows instead of a part that was erased.
ERASED_PART: Final = "[erased]"
