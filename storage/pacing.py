"""Turns at a VLM shared among all processes of a service: a sorted set per VLM in Redis, one script, its clock.

A broker that is away is no reason to fail a job: then each process keeps to the limit by itself. What a broker
forgot is forgotten: the window begins anew.
"""

from __future__ import annotations

import logging
import secrets
import time
from typing import Any, cast

from redis import ConnectionPool, Redis
from redis.exceptions import RedisError

from orchestrator.pacing import InProcess, Rate, Turn

PREFIX = "cliploop:pace:"
ANSWER_SECONDS = 2.0
AWAY_SECONDS = 1.0  # a broker that did not answer is left alone for so long
_KEPT_AFTER_SECONDS = 600.0
_log = logging.getLogger(__name__)

# As `orchestrator.pacing.Book`: a member is id:tokens, its score the turn in microseconds of the broker's clock.
_BOOK = """
local window, requests, tokens = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local mine, longest, id, kept = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7])
if redis.call('TYPE', KEYS[1])['ok'] ~= 'zset' then redis.call('DEL', KEYS[1]) end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - window))
local booked = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
local count = #booked / 2
local at = now
if count > 0 then at = math.max(at, tonumber(booked[2 * count])) end
if requests > 0 and count >= requests then
  at = math.max(at, tonumber(booked[2 * (count - requests + 1)]) + window)
end
if tokens > 0 then
  local left = tokens - math.min(mine, tokens)
  for number = count, 1, -1 do
    left = left - (tonumber(string.match(booked[2 * number - 1], ':(%d+)$')) or 0)
    if left < 0 then
      at = math.max(at, tonumber(booked[2 * number]) + window)
      break
    end
  end
end
if at - now > longest then return {string.format('%.0f', at - now), 0} end
redis.call('ZADD', KEYS[1], string.format('%.0f', at), id .. ':' .. string.format('%.0f', mine))
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', (window + longest) / 1000 + kept))
return {string.format('%.0f', at - now), 1}
"""
_CORRECT = """
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if string.match(member, '^(.*):%d+$') == ARGV[1] then
    local at = redis.call('ZSCORE', KEYS[1], member)
    redis.call('ZREM', KEYS[1], member)
    redis.call('ZADD', KEYS[1], at, ARGV[1] .. ':' .. ARGV[2])
    return 1
  end
end
return 0
"""


class SharedPacing:
    """Implements orchestrator.ports.RateLimiter for all processes on the broker of these connections."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._redis: Any = cast("Any", Redis)(connection_pool=pool)
        self._book: Any = self._redis.register_script(_BOOK)
        self._correct: Any = self._redis.register_script(_CORRECT)
        self._alone = InProcess(time.monotonic)
        self._away_until = 0.0

    def book(self, name: str, rate: Rate, tokens: int, longest_seconds: float) -> Turn:
        id = secrets.token_hex(8)
        limits = [_micros(rate.window_seconds), rate.requests, rate.tokens, tokens, _micros(longest_seconds)]
        said = self._reached(
            lambda: self._book([PREFIX + name], [*limits, id, round(_KEPT_AFTER_SECONDS * 1000)])
        )
        if said is None:
            return self._alone.book(name, rate, tokens, longest_seconds)
        return Turn(int(said[0]) / 1e6, id if int(said[1]) else "")

    def correct(self, name: str, id: str, tokens: int) -> None:
        self._alone.correct(name, id, tokens)
        self._reached(lambda: self._correct([PREFIX + name], [id, tokens]))

    def _reached(self, call: Any) -> Any:
        """What the broker says, or None where it is away."""
        if time.monotonic() < self._away_until:
            return None
        try:
            said = call()
        except (RedisError, OSError) as error:
            _log.warning(
                "the broker cannot be reached (%s): for %g s this process keeps to the models' limits by itself",
                error,
                AWAY_SECONDS,
            )
            self._away_until = time.monotonic() + AWAY_SECONDS
            return None
        return said

    def close(self) -> None:
        self._redis.close()
        self._pool.disconnect()


def _micros(seconds: float) -> int:
    return round(seconds * 1e6)
