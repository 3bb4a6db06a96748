"""The list in the cache that holds a window: each change is one atomic round trip.

The list is a copy of the transcript, and its readers check it against the transcript. A writer
that has read the transcript replaces the list only if the list is still as it was before.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, cast
from uuid import uuid4

from django_redis import get_redis_connection
from redis import Redis
from redis.exceptions import ResponseError

from memory.conversations.turns import Turn

# How often a writer reads the list and the transcript again because the list was changed meanwhile.
MAX_ATTEMPTS: Final = 5

# Answers 1 when the turns are in the window (now or already), 0 when it must be rebuilt first: it
# is missing, it is not a list, it was forgotten (or cleared, by a version before this one), or the
# turn that should stand before these is not in it (FIRST: there is none, but other messages are in
# it).
APPEND = """
local window, before = tonumber(ARGV[1]), ARGV[2]
if redis.call('TYPE', KEYS[1]).ok ~= 'list' then return 0 end
local held = redis.call('LRANGE', KEYS[1], 0, -1)
for _, mark in ipairs({'^{"forgotten":', '^{"cleared":'}) do
  if string.match(held[1], mark) then return 0 end
end
local known, with_id = {}, 0
for _, entry in ipairs(held) do
  local id = string.match(entry, '^{"message_id":"([^"]+)"')
  if id then known[id] = true; with_id = with_id + 1 end
end
local fresh = {}
for i = 3, #ARGV, 2 do
  if not known[ARGV[i]] then fresh[#fresh + 1] = ARGV[i + 1] end
end
if #fresh == 0 then return 1 end
if before == 'first' and with_id > 0 then return 0 end
if before ~= 'first' and before ~= '' and not known[before]
  and (with_id > 0 or #held < window) then return 0 end
redis.call('RPUSH', KEYS[1], unpack(fresh))
redis.call('LTRIM', KEYS[1], -window, -1)
return 1
"""

# Answers 1 when the window was written, 0 when the list is not the one that was read.
WRITE = """
local window, kind = tonumber(ARGV[1]), redis.call('TYPE', KEYS[1]).ok
local held = {}
if kind == 'list' then held = redis.call('LRANGE', KEYS[1], 0, -1) end
if redis.sha1hex(table.concat(held, '\\n')) ~= ARGV[2] then return 0 end
if kind ~= 'none' then redis.call('DEL', KEYS[1]) end
for i = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
redis.call('LTRIM', KEYS[1], -window, -1)
return 1
"""

# The entry is no turn, and no other list has it: readers rebuild the window, and a writer that read
# the list and the transcript before does not write it.
FORGET = """
redis.call('DEL', KEYS[1])
redis.call('RPUSH', KEYS[1], '{"forgotten":"' .. ARGV[1] .. '"}')
"""


FIRST = "first"


def read(key: str) -> list[bytes]:
    """All entries, oldest first; none if the list is missing, or is not a list."""
    try:
        entries = _client().lrange(key, 0, -1)
    except ResponseError as error:
        if not str(error).startswith("WRONGTYPE"):
            raise
        return []
    return cast(list[bytes], entries)


def append(key: str, turns: Sequence[Turn], *, window: int, before: str = "") -> bool:
    """Append turns that are not in the window yet; False if it must be rebuilt first.

    Args:
        before: id of the message that ended the turn before these, or FIRST. A window without it
            has lost something: the cache was away, or came back from an old snapshot. Or it has
            gone on, and these turns have left it already.
    """
    arguments = [part for turn in turns for part in (turn.message_id, turn.encode())]
    return bool(_run(APPEND, key, window, before, *arguments))


def write(key: str, entries: Sequence[str | bytes], *, window: int, held: Sequence[bytes]) -> bool:
    """Replace the list by the last `window` entries; False if another writer changed it.

    Args:
        held: the list as `read` returned it, before the transcript was read.
    """
    digest = hashlib.sha1(b"\n".join(held), usedforsecurity=False).hexdigest()
    return bool(_run(WRITE, key, window, digest, *entries))


def forget(key: str) -> None:
    """Remove all turns: the next reader takes them from the transcript."""
    _run(FORGET, key, str(uuid4()))


def _run(script: str, key: str, *arguments: str | bytes | int) -> int:
    result: int = _client().register_script(script)(keys=[key], args=arguments)
    return result


def _client() -> Redis:
    return get_redis_connection("default")
