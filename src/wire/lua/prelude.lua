-- The functions that several scripts share. A script of Redis cannot load another Lua file. Therefore the build puts
-- the functions that a script calls, from this file and from quarantine.lua, in front of the script (see embed.cmake).
-- A function may call only functions above it, and none of quarantine.lua.
--
-- A *resource* is what a lock protects: a key with the name that the user locks. While a lock holds it alone, the value
-- of the key is the *owner*: 40 random hex digits, new for each attempt to acquire. Other keys *beside* the resource
-- have names that are made from its name. For the resource `orders` they are:
--
--     {orders}:fence         the *counter* of the holders; the fencing token is made from it
--     {orders}:queue         the clients that wait for the resource
--     {orders}:queue:signs   when each of these clients last called enter_queue, as a sign of life
--     {orders}:readers       the locks that hold the resource together
--     {orders}:holder        a text that the holder leaves for people to read
--
-- The *quarantine* (quarantine.lua) is an optional time for which a node does not vote after it may have lost its data.
-- Each node then has one *marker*: a key with the instant at which the data of the node began to exist.
--
-- Durations are in milliseconds, except for the quarantine and the time that a client has waited, which are in
-- microseconds. A marker is in microseconds since 1970. A counter starts with the present time in this unit, and then
-- counts by one. These numbers are written with string.format('%.0f'), because Lua itself would write 1.76e+15.

-- Returns the run id and the replication id of the server, each followed by a colon. They identify its *present data*:
-- a restart changes the run id, and a promotion to master changes the replication id. The values of counters and
-- markers begin with this text. If a value begins otherwise, it comes from another server, or from the time before a
-- restart or a promotion. Returns nil and an error reply if the server is not a master.
local function identity_of_data()
  local info = redis.call('info', 'server') .. redis.call('info', 'replication')
  -- Whole lines are matched, because a file name or host name in INFO may contain any text.
  local run, replid = string.match(info, '\nrun_id:(%C+)'), string.match(info, '\nmaster_replid:(%C+)')
  if not (run and replid and string.find(info, '\nrole:master\r\n', 1, true)) then
    return nil, {err = 'READONLY its INFO does not say role:master, run_id and master_replid'}
  end
  return run .. ':' .. replid .. ':'
end

-- ---- Recognising the values of this library. A key beside a resource can belong to another program. Therefore no
-- script changes such a key before one of these functions has recognised its value.

-- Returns the text in a key, false if the key does not exist, or nil if it has another type. If there is another error,
-- for example because the Redis user may not read the key, ends the script with this error.
local function text_in(key)
  local held = redis.pcall('get', key)
  if type(held) ~= 'table' then return held end
  if not string.find(held.err, 'WRONGTYPE', 1, true) then redis.call('get', key) end
end

local function is_owner(text)
  return string.find(text, '^' .. string.rep('%x', 40) .. '$') ~= nil
end

-- Returns the number in a counter or a marker, which may belong to any data: the present data, earlier data, or the
-- data of another server. Returns nil if the text is neither a counter nor a marker. Lua's numbers are exact only up to
-- about 9e15, which are the microseconds until the year 2255.
local function number_of_any_data(text)
  local number = string.match(text, '^' .. string.rep('.', 40) .. ':' .. string.rep('.', 40) .. ':(%d+)$')
  return number and tonumber(number) < 9e15 and tonumber(number) or nil
end

-- Returns the number in a counter or a marker that belongs to the present data, otherwise nil. `data` is the result of
-- identity_of_data().
local function number_in(data, text)
  return string.sub(text, 1, #data) == data and tonumber(string.sub(text, #data + 1)) or nil
end

-- Counts one more holder in each of the n counters, which are KEYS from `first` on. Sets all of them to the largest new
-- count, with the expiry, and returns this count. A counter that is missing or belongs to other data starts with the
-- time of the server's clock. Returns nil and an error reply if one of these keys is no counter.
local function count_holder(data, n, first, expiry)
  local time = redis.call('time')
  local fence, seed = 0, time[1] * 1000000 + time[2]
  for i = first, first + n - 1 do
    local held = text_in(KEYS[i])
    local count = held and number_of_any_data(held)
    -- If the key does not exist, `held` is false. Otherwise it must be a count.
    if held ~= false and not count then
      return nil, {err = 'WRONGTYPE ' .. KEYS[i] .. ' holds no count'}
    end
    count = held and number_in(data, held)
    fence = math.max(fence, count and count + 1 or seed)
  end
  for i = first, first + n - 1 do
    redis.call('set', KEYS[i], data .. string.format('%.0f', fence), 'px', expiry)
  end
  return fence
end

-- Raises each of the n counters, which are KEYS from `first` on, to the fencing token ARGV[3] if the counter is
-- smaller. The expiry of the counters is ARGV[4]. Returns a number:
--
--     1        every counter is now at least the token
--     0        a counter is missing or belongs to other data; nothing was changed. The next acquisition starts it with
--              the present time.
--     -count   the token is ahead of the server's clock by more than the expiry; nothing was changed. `count` is the
--              largest counter. A raised counter could expire before the clock reaches the token, and would then
--              start again below the token.
local function raise_counters(data, n, first)
  local count, token, expiry = 0, ARGV[3], ARGV[4]
  for i = first, first + n - 1 do
    local held = number_in(data, redis.call('get', KEYS[i]) or '')
    if not held then return 0 end
    count = math.max(count, held)
  end
  local time = redis.call('time')
  if tonumber(token) > time[1] * 1000000 + time[2] + expiry * 1000 then return -count end
  for i = first, first + n - 1 do
    if number_in(data, redis.call('get', KEYS[i])) < tonumber(token) then
      redis.call('set', KEYS[i], data .. token, 'px', expiry)
    end
  end
  return 1
end

-- ---- The queue of a resource (LockOptions::fair) is a sorted set of *tickets*. Each client that waits for the
-- resource, a *waiter*, has one ticket. The score of a ticket is the instant since which the client waits, in
-- microseconds.
--
-- A ticket is a channel, then '|' and the number of the ticket on this channel. The waiter is subscribed to the
-- channel. To *wake* the waiter is to publish its ticket there. If the resource is free, it is then *reserved* for the
-- waiter: its value is the ticket. This keeps other clients away until the waiter has made its attempt.

local function is_ticket(text)
  return string.find(text, '^redlock:wake:[^|]+|%d+$') ~= nil
end

-- Returns an error reply if the key belongs to another program: it is no sorted set, or its first member is no ticket.
-- Returns the error of ZRANGE as well if the Redis user may not use it, because then nobody knows whose key it is.
-- Otherwise returns nil.
local function check_queue(queue)
  local first = redis.pcall('zrange', queue, 0, 0)
  if first.err then return first end
  if first[1] and not is_ticket(first[1]) then return {err = 'WRONGTYPE ' .. queue .. ' holds no queue'} end
end

-- Puts back a ticket that was taken out of the queue. `popped` is the reply of ZPOPMIN: the ticket and its score. Sets
-- the expiry again, because the queue has lost it if this was the last ticket. Drops the ticket if the expiry is
-- unknown or cannot be set, because a queue without an expiry would stay for ever.
local function put_back(queue, popped, expiry)
  if type(expiry) ~= 'number' or expiry <= 0 then return end
  redis.pcall('zadd', queue, popped[2], popped[1])
  if redis.pcall('pexpire', queue, expiry) ~= 1 then redis.pcall('zrem', queue, popped[1]) end
end

-- Wakes the first waiter in the queue that is still subscribed, and reserves the resource for this waiter if the
-- resource is free. Drops the tickets in front of this waiter.
--
-- The ticket ARGV[1] counts as subscribed, and gets no message. ARGV[1] is a ticket in the queue only if enter_queue
-- calls this function. The waiter with this ticket has then sent the command, and gets the reply.
--
-- Looks at 128 tickets at most, because the server does nothing else meanwhile. Returns the number of woken waiters,
-- which is 0 or 1, or the error reply of PUBLISH or of check_queue().
local function wake_next(resource, queue, reservation_ttl)
  for _ = 1, 128 do
    local failure = check_queue(queue)
    if failure then return failure end
    local expiry = redis.pcall('pttl', queue)
    local first = redis.pcall('zpopmin', queue)
    local ticket = first[1]
    if not ticket then return 0 end
    local bar = string.find(ticket, '|', 1, true)
    if bar then
      local heard = 1
      if ticket ~= ARGV[1] then heard = redis.pcall('publish', string.sub(ticket, 1, bar - 1), ticket) end
      if type(heard) ~= 'number' then
        put_back(queue, first, expiry)
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

-- Records that the waiter with this ticket has called enter_queue, and removes up to 16 waiters whose last call is
-- longer ago than `lifetime`. The last calls are in a sorted set beside the queue. The score of a ticket there is the
-- instant of the call, in milliseconds.
--
-- Does nothing if the key of this set belongs to another program, or if the Redis user may not use the key. The first
-- PEXPIRE only tests whether the user may set the expiry. The key is not in KEYS, because Redis would then refuse the
-- whole script to a user who may not use the key.
local function remove_silent_waiters(queue, ticket, now, lifetime)
  local signs = queue .. ':signs'
  local oldest = redis.pcall('zrange', signs, 0, 15, 'withscores')
  if oldest.err or (oldest[1] and not is_ticket(oldest[1])) then return end
  if type(redis.pcall('pexpire', signs, lifetime)) ~= 'number' then return end
  for i = 1, #oldest, 2 do
    if oldest[i + 1] + lifetime >= now then break end
    redis.pcall('zrem', queue, oldest[i])
    redis.pcall('zrem', signs, oldest[i])
  end
  redis.pcall('zadd', signs, string.format('%.0f', now), ticket)
  redis.pcall('pexpire', signs, lifetime)
end

-- Removes waiters whose channel has no subscriber, because nobody could wake them. Checks only 16 tickets, which follow
-- each other in the queue and are all in front of `ticket`. The random `number` decides where these 16 begin. Does
-- nothing if the Redis user may not use PUBSUB NUMSUB.
local function remove_waiters_without_listener(queue, ticket, number)
  local in_front = redis.pcall('zrank', queue, ticket)
  if type(in_front) ~= 'number' or in_front == 0 then return end
  local from = number % math.max(1, in_front - 15)
  local tickets = redis.pcall('zrange', queue, from, math.min(from + 15, in_front - 1))
  local channels = {}
  for i, it in ipairs(tickets) do channels[i] = string.match(it, '^[^|]*') end
  local listeners = redis.pcall('pubsub', 'numsub', unpack(channels))
  for i, it in ipairs(tickets) do
    if listeners[2 * i] == 0 and is_ticket(it) then redis.pcall('zrem', queue, it) end
  end
end

-- Removes the ticket of a waiter from the queue, and the reservation of the resource KEYS[1] for this waiter.
local function leave_queue(queue, ticket)
  if redis.call('get', KEYS[1]) == ticket then redis.call('del', KEYS[1]) end
  redis.pcall('zrem', queue, ticket)
end

-- ---- Readers (LockOptions::shared) are locks that hold a resource together. Their owners are in a sorted set. The
-- score of an owner is the instant at which its ttl ends, in milliseconds. While there are readers, the value of the
-- resource itself is the text 'redlock:shared', the *shared marker*, which keeps out all other locks. Both keys
-- expire with the last reader.

-- Returns the shared marker of the resource whose readers are in the key `readers`:
--
--     resource   key of its readers    shared marker
--     x          {x}:readers           redlock:shared
--     {x}        {x}:tag-readers       redlock:shared-tag
--
-- A name in braces has a key of its own, because {x}:readers belongs to the resource x. It has a marker of its own as
-- well, because earlier versions of this library had another key for the readers of {x}, and the marker redlock:shared.
-- Their readers and the present readers do not know each other, so the two markers must keep them apart.
local function shared_marker(readers)
  return string.sub(readers, -12) == ':tag-readers' and 'redlock:shared-tag' or 'redlock:shared'
end

-- Returns the key of the readers, the time in milliseconds, and an error reply if the key holds anything but readers.
local function check_readers()
  local readers, time = KEYS[2], redis.call('time')
  local first = redis.call('zrange', readers, 0, 0)[1]
  local failure = first and not is_owner(first) and {err = 'WRONGTYPE ' .. readers .. ' holds no readers'} or nil
  return readers, time[1] * 1000 + math.floor(time[2] / 1000), failure
end

local function remove_ended_readers(readers, now)
  redis.call('zremrangebyscore', readers, '-inf', string.format('(%.0f', now))
end

-- Lets the resource and the set of readers expire with the last reader. Deletes the resource if no reader is left.
-- Changes the resource only while its value is the shared marker.
local function follow_last_reader(readers)
  local marked = text_in(KEYS[1]) == shared_marker(readers)
  local last = redis.call('zrange', readers, -1, -1, 'withscores')[2]
  if last then redis.call('pexpireat', readers, last) end
  if marked and last then
    redis.call('pexpireat', KEYS[1], last)
  elseif marked then
    redis.call('del', KEYS[1])
  end
end

-- Returns true if the resource has a value other than the shared marker, so that no reader may enter. The value can be
-- an owner, a reservation, or the value that blocks the resource for a minimum hold time (release.lua).
local function held_by_writer(readers)
  local held = text_in(KEYS[1])
  return held ~= false and held ~= shared_marker(readers)
end

-- Adds the owner ARGV[1] to the readers, with the ttl ARGV[3]. PEXPIREAT comes first: if the Redis user may not use it,
-- the script ends before it adds a reader. It has no effect on a missing key, so follow_last_reader() sets the expiry.
local function enter_readers(readers, now)
  local ends, last = now + ARGV[3], redis.call('zrange', readers, -1, -1, 'withscores')[2]
  redis.call('pexpireat', readers, string.format('%.0f', math.max(ends, last or 0)))
  redis.call('zadd', readers, string.format('%.0f', ends), ARGV[1])
  redis.call('set', KEYS[1], shared_marker(readers), 'px', ARGV[3])
  follow_last_reader(readers)
end

-- Returns the instant at which the ttl of the reader ARGV[1] ends. Returns nil if this owner is not a reader, or if the
-- value of the resource is no longer the shared marker.
local function end_of_reader(readers)
  local ends = redis.call('zscore', readers, ARGV[1])
  return ends and text_in(KEYS[1]) == shared_marker(readers) and ends or nil
end
