-- The functions that several scripts share. Redis has no modules, so the build puts in front of each script the functions of
-- this file that the script calls. A function may call only functions above it.
--
-- Numbers of microseconds are written with string.format('%.0f'), because Lua itself would write 1.76e+15.

-- Returns the prefix of every counter and marker that belongs to the present data of this server: its run id and its
-- replication id, each with a colon behind it. A restart changes the first, a promotion to master the second. Values with
-- another prefix came by replication, from an old file, or from a time before another server was the master.
-- Returns nil and an error reply if the server is not a master. Looks at whole lines of INFO, because the name of a file or of
-- a host in it may contain anything.
local function identity_of_data()
  local info = redis.call('info', 'server') .. redis.call('info', 'replication')
  local run, replid = string.match(info, '\nrun_id:(%C+)'), string.match(info, '\nmaster_replid:(%C+)')
  if not (run and replid and string.find(info, '\nrole:master\r\n', 1, true)) then
    return nil, {err = 'READONLY its INFO does not say role:master, run_id and master_replid'}
  end
  return run .. ':' .. replid .. ':'
end

-- ---- What is of our own kind. Other programs can create a key of any name, and a resource may be called as the key beside
-- another resource is. So no script changes a key that exists before one of these functions has recognised its content.

-- Returns whether the text is an owner: 40 hex digits.
local function is_owner(text)
  return string.find(text, '^' .. string.rep('%x', 40) .. '$') ~= nil
end

-- Returns the number in a counter or a marker, whatever data it belongs to; nil if the text is neither.
local function number_of_any_data(text)
  return tonumber(string.match(text, '^' .. string.rep('.', 40) .. ':' .. string.rep('.', 40) .. ':(%d+)$') or '')
end

-- Returns the number behind the prefix `data`, or nil if `text` has another prefix.
local function number_in(data, text)
  return string.sub(text, 1, #data) == data and tonumber(string.sub(text, #data + 1)) or nil
end

-- Returns the reply of a node that may not vote yet, because it is not known to have had its data for the whole quarantine (in
-- microseconds), or because the key of the marker belongs to somebody else; nil if the node may vote. The marker, the last of KEYS, holds the instant since which the server has had its
-- data. The marker disappears with the data, and the first command makes it again. A clock that was set back counts
-- against the node.
local function check_age(data, quarantine)
  local marker, time = KEYS[#KEYS], redis.call('time')
  local now = time[1] * 1000000 + time[2]
  local value = redis.call('get', marker)
  if value and not number_of_any_data(value) then return {err = 'WRONGTYPE ' .. marker .. ' holds no marker'} end
  local since = value and number_in(data, value)
  local expiry = string.format('%.0f', math.max(2419200000, quarantine / 500))
  if not since then
    since = now
    redis.call('set', marker, data .. string.format('%.0f', now), 'px', expiry)
  end
  if since + quarantine > now then
    return {ok = string.format('QUARANTINED for another %.0f ms', (since + quarantine - now) / 1000)}
  end
  if redis.call('pttl', marker) < expiry / 2 then redis.call('pexpire', marker, expiry) end
end

-- Returns the reply of a node that may not vote, or nil. The quarantine, in microseconds, is the last of ARGV; 0 means that
-- there is none.
local function check_quarantine()
  local quarantine = tonumber(ARGV[#ARGV])
  if quarantine == 0 then return nil end
  local data, failure = identity_of_data()
  return failure or check_age(data, quarantine)
end

-- Does the same for a vote that comes with a count. Returns the prefix of the counters' values, and the reply of a node that
-- may not vote.
local function check_counting()
  local quarantine = tonumber(ARGV[#ARGV])
  local data, failure = identity_of_data()
  if not failure and quarantine > 0 then failure = check_age(data, quarantine) end
  return data, failure
end

-- Returns whether one of the first n KEYS exists.
local function any_exists(n)
  for i = 1, n do
    if redis.call('exists', KEYS[i]) == 1 then return true end
  end
  return false
end

-- Sets each of the first n KEYS to the owner, with the ttl.
local function set_resources(n)
  for i = 1, n do redis.call('set', KEYS[i], ARGV[1], 'px', ARGV[2]) end
end

-- Counts one more holder in each of the n counters, which are KEYS from n + 1 on. Sets all of them to the largest new count,
-- with the expiry ARGV[4], and returns this count; returns nil and an error reply if a key holds no count. A counter of other
-- data starts again with the wall clock in microseconds.
local function count_holder(data, n)
  local time = redis.call('time')
  local fence, seed = 0, time[1] * 1000000 + time[2]
  for i = n + 1, 2 * n do
    local held = redis.pcall('get', KEYS[i])
    local count = type(held) == 'string' and number_of_any_data(held)
    if held and not (count and count < 9e15) then
      return nil, {err = 'WRONGTYPE ' .. KEYS[i] .. ' holds no count'}
    end
    count = held and number_in(data, held)
    fence = math.max(fence, count and count + 1 or seed)
  end
  for i = n + 1, 2 * n do
    redis.call('set', KEYS[i], data .. string.format('%.0f', fence), 'px', ARGV[4])
  end
  return fence
end

-- Raises each of the n counters, which are KEYS from n + 1 on, to ARGV[2] if it is smaller, and returns 1. Makes no counter: a
-- missing one must be seeded by the next grant, so the function returns 0. Returns minus the largest count if ARGV[2] is so far
-- ahead of the wall clock that a new seed could be smaller after the counters have expired.
local function raise_counters(data, n)
  local count = 0
  for i = n + 1, 2 * n do
    local held = number_in(data, redis.call('get', KEYS[i]) or '')
    if not held then return 0 end
    count = math.max(count, held)
  end
  local time = redis.call('time')
  if tonumber(ARGV[2]) > time[1] * 1000000 + time[2] + ARGV[4] * 1000 then return -count end
  for i = n + 1, 2 * n do
    if number_in(data, redis.call('get', KEYS[i])) < tonumber(ARGV[2]) then
      redis.call('set', KEYS[i], data .. ARGV[2], 'px', ARGV[4])
    end
  end
  return 1
end

-- ---- The queue of waiters (LockOptions::fair): a sorted set of tickets, ordered by age. A ticket is the channel to which its
-- waiter is subscribed, then '|' and a number. A resource whose value contains '|' is reserved: its value is the ticket of
-- the waiter that was woken, and it is not a vote. The reservation keeps newcomers away from this node until the waiter has
-- had time to make its round.

-- Reserves the resource, if it is free, for the first waiter in the queue that is still subscribed; earlier tickets have no
-- waiter any more and are dropped. If the first ticket is the caller's own (ARGV[1]), no message is sent. Looks at 128
-- tickets at most, because a server does nothing else meanwhile. Returns the number of woken waiters, or the error of PUBLISH.
local function wake_next(resource, queue, reservation_ttl)
  for _ = 1, 128 do
    local first = redis.pcall('zpopmin', queue)
    local ticket = first[1]
    if not ticket then return 0 end
    local bar = string.find(ticket, '|', 1, true)
    if bar then
      local heard = 1
      if ticket ~= ARGV[1] then heard = redis.pcall('publish', string.sub(ticket, 1, bar - 1), ticket) end
      if type(heard) ~= 'number' then
        redis.pcall('zadd', queue, first[2], ticket)
        return heard
      end
      if heard > 0 then
        redis.pcall('set', resource, ticket, 'nx', 'px', reservation_ttl)
        return 1
      end
    end
  end
  return 0
end

-- Takes the waiter out of the queue, and deletes the reservation that may stand there for it. Removes the queue from KEYS and
-- the ticket from ARGV, which are the second of each, so that the rest of the script finds what it would find without a queue.
local function leave_queue()
  local queue, ticket = table.remove(KEYS, 2), table.remove(ARGV, 2)
  if redis.call('get', KEYS[1]) == ticket then redis.call('del', KEYS[1]) end
  redis.pcall('zrem', queue, ticket)
end

-- ---- Readers (LockOptions::shared): a sorted set of the readers' owners by the instant at which each ends, in milliseconds of
-- the server's clock. While there are readers, the resource itself holds a marker, which keeps out every exclusive lock, also
-- of other clients that know nothing of readers. Both keys expire with the last reader.

-- Returns the marker. The readers of a resource in braces have another marker, because earlier versions keep them under another
-- key: clients of both versions must exclude each other there.
local function shared_marker(readers)
  return string.sub(readers, -12) == ':tag-readers' and 'redlock:shared-tag' or 'redlock:shared'
end

-- Removes the key of the readers, the second, from KEYS, so that the rest of the script finds what it would find for an
-- exclusive lock. Returns the key, the server's clock in milliseconds, and an error reply if the key holds anything else.
local function take_readers()
  local readers, time = table.remove(KEYS, 2), redis.call('time')
  local first = redis.call('zrange', readers, 0, 0)[1]
  local failure = first and not is_owner(first) and {err = 'WRONGTYPE ' .. readers .. ' holds no readers'} or nil
  return readers, time[1] * 1000 + math.floor(time[2] / 1000), failure
end

-- Removes the readers whose ttl has ended.
local function remove_ended_readers(readers, now)
  redis.call('zremrangebyscore', readers, '-inf', string.format('(%.0f', now))
end

-- Sets the expiry of the resource and of the set to the instant at which the last reader ends. Changes the resource only while
-- it belongs to the readers, and deletes it if there is no reader left.
local function follow_last_reader(readers)
  local marked = redis.pcall('get', KEYS[1]) == shared_marker(readers)
  local last = redis.call('zrange', readers, -1, -1, 'withscores')[2]
  if last then redis.call('pexpireat', readers, last) end
  if marked and last then
    redis.call('pexpireat', KEYS[1], last)
  elseif marked then
    redis.call('del', KEYS[1])
  end
end

-- Returns whether an exclusive lock holds the resource.
local function held_by_writer(readers)
  local held = redis.pcall('get', KEYS[1])
  return held and held ~= shared_marker(readers)
end

-- Adds the owner to the readers, with the ttl ARGV[2].
local function enter_readers(readers, now)
  redis.call('zadd', readers, string.format('%.0f', now + ARGV[2]), ARGV[1])
  redis.call('set', KEYS[1], shared_marker(readers), 'px', ARGV[2])
  follow_last_reader(readers)
end

-- Returns the instant at which this reader ends, or nil if it is none or the resource no longer belongs to the readers.
local function end_of_reader(readers)
  local ends = redis.call('zscore', readers, ARGV[1])
  return ends and redis.pcall('get', KEYS[1]) == shared_marker(readers) and ends or nil
end
