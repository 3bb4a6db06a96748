"""The list in the cache that holds a window: each change is one atomic round trip.

An explicit clear leaves one entry, ``{"cleared": number}``, so that an empty window differs from
a lost one, and nobody who read the transcript before the clear can write the old turns back.
"""

from collections.abc import Sequence
from typing import cast

from django_redis import get_redis_connection
from redis import Redis
from redis.exceptions import ResponseError

from memory.conversations.turns import Turn

# Answers 1 when the turns are in the window (now or already), 0 when it must be rebuilt first: it
# is missing, it is not a list, or the turn that should stand before these is not in it (FIRST:
# there is none, but other messages are in it).
APPEND = """
local window, before = tonumber(ARGV[1]), ARGV[2]
if redis.call('TYPE', KEYS[1]).ok ~= 'list' then return 0 end
local held = redis.call('LRANGE', KEYS[1], 0, -1)
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

# Answers 1 when the window was written, 0 when somebody else had made it (or cleared it) meanwhile.
WRITE = """
local window, cleared, replace = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'list' then
  if not replace then return 0 end
  for _, entry in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    local mark = string.match(entry, '^{"cleared":(%d+)}$')
    if mark and tonumber(mark) > cleared then return 0 end
  end
end
if kind ~= 'none' then redis.call('DEL', KEYS[1]) end
for i = 4, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
redis.call('LTRIM', KEYS[1], -window, -1)
return 1
"""

CLEAR = """
redis.call('DEL', KEYS[1])
redis.call('RPUSH', KEYS[1], '{"cleared":' .. ARGV[1] .. '}')
"""


FIRST = "first"


def read(key: str, n: int | None = None) -> list[bytes]:
    """The last n entries (or all), oldest first; none if the list is missing, or is not a list."""
    try:
        entries = _client().lrange(key, 0 if n is None else -n, -1)
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


def write(
    key: str, turns: Sequence[Turn], *, window: int, cleared: int, replace: bool = False
) -> bool:
    """Write a whole window; False if it stands already, or was cleared since it was read.

    Args:
        cleared: the last clear that whoever read these turns knew of.
        replace: a window that stands is replaced.
    """
    entries = [turn.encode() for turn in turns]
    return bool(_run(WRITE, key, window, cleared, int(replace), *entries))


def clear(key: str, number: int) -> None:
    """Leave nothing but the mark of the clear."""
    _run(CLEAR, key, number)


def _run(script: str, key: str, *arguments: str | int) -> int:
    result: int = _client().register_script(script)(keys=[key], args=arguments)
    return result


def _client() -> Redis:
    return get_redis_connection("default")
