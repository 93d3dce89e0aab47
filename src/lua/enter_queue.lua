-- Enters the queue of waiters, or stays in it. Reports who has the resource, and how many waiters are in front. If
-- the resource is free although clients wait, its holder has died, or does not wake waiters. Then the script reserves
-- the resource for the first waiter. Removes the tickets of waiters that have died.
-- KEYS: the resource, its queue.
-- ARGV: ticket, reservation ttl, how long the waiter has waited (in microseconds), expiry of the queue, '1' if this
-- call may reserve a free resource, the former ticket of this waiter (or empty), which the new one replaces.
-- Returns the status RESERVED, or WAITING with the remaining time of the key (in milliseconds), the number of waiters
-- in front, and what the key is: 'holder', 'reservation' or 'nothing'.
local held = redis.call('get', KEYS[1])
if held == ARGV[1] then return {ok = 'RESERVED'} end
local failure = check_queue(KEYS[2])
if failure then return failure end
-- If the Redis user may not set the expiry of the queue, the script ends here, before it adds a ticket. Otherwise the
-- queue would stay for ever.
redis.call('pexpire', KEYS[2], ARGV[4])
if ARGV[6] ~= '' then
  redis.call('zrem', KEYS[2], ARGV[6])
  if held == ARGV[6] then
    redis.call('del', KEYS[1])
    held = false
  end
end
local time = redis.call('time')
remove_silent_waiters(KEYS[2], ARGV[1], time[1] * 1000 + math.floor(time[2] / 1000), ARGV[4])
redis.call('zadd', KEYS[2], 'nx', string.format('%.0f', time[1] * 1000000 + time[2] - ARGV[3]), ARGV[1])
redis.call('pexpire', KEYS[2], ARGV[4])
remove_waiters_without_listener(KEYS[2], ARGV[1], time[2])
if not held and ARGV[5] == '1' then
  local woken = wake_next(KEYS[1], KEYS[2], ARGV[2])
  if type(woken) ~= 'number' then return woken end
  held = redis.call('get', KEYS[1])
  if held == ARGV[1] then return {ok = 'RESERVED'} end
end
local what = not held and 'nothing' or is_ticket(held) and 'reservation' or 'holder'
return {
  ok = string.format(
    'WAITING %.0f %.0f %s', redis.call('pttl', KEYS[1]), redis.call('zrank', KEYS[2], ARGV[1]) or 0, what
  )
}
