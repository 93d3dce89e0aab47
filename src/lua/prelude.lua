-- The functions that several scripts share. A script of Redis cannot load another Lua file. For each script, the build
-- takes the functions that the script calls from this file and from quarantine.lua, and puts them in front of the
-- script (see embed.cmake). A function may call only functions above it, and none of quarantine.lua.
--
-- A *resource* is the name that is locked, and the key of this name. While a lock holds the resource, the value of this
-- key is the *owner*: 40 random hex digits, new for each attempt to acquire. The keys *beside* a resource have names
-- that are made from its name. For the resource `orders` they are:
--
--     {orders}:fence         the *counter*: a number that each holder raises by one, for the fencing token
--     {orders}:queue         the clients that wait for the resource
--     {orders}:queue:signs   when each of these clients has last reported to the queue
--     {orders}:readers       the locks that hold the resource together
--     {orders}:holder        a text that the holder leaves for people to read
--
-- In addition a node can have one *marker*, the key in which it stores since when it has had its data. A node that has
-- lost its data does not vote for a while (see quarantine.lua). The *shared marker* is something else: the value of a
-- resource while readers hold it (see the part on readers).
--
-- Durations are in milliseconds, except for the quarantine and for the time that a waiter has waited, which are in
-- microseconds. The first number of a counter is the time of the server's clock, in microseconds since 1970, and each
-- holder adds one. The number in the marker is an instant of this clock. These numbers are written with
-- string.format('%.0f'), because Lua itself would write 1.76e+15.
--
-- Counters and markers begin with a prefix that identifies the *present data* of the server that has written them. The
-- prefix consists of the run id and the replication id of the server, each followed by a colon. A restart changes the
-- run id, and a promotion to master changes the replication id. A value with another prefix was written by another
-- server, or by this server before a restart or a promotion.

-- Returns the prefix that identifies the present data of this server. Returns nil and an error reply if the server is
-- not a master. Compares whole lines of INFO, because a file name or host name in INFO may contain any text.
local function identity_of_data()
  local info = redis.call('info', 'server') .. redis.call('info', 'replication')
  local run, replid = string.match(info, '\nrun_id:(%C+)'), string.match(info, '\nmaster_replid:(%C+)')
  if not (run and replid and string.find(info, '\nrole:master\r\n', 1, true)) then
    return nil, {err = 'READONLY its INFO does not say role:master, run_id and master_replid'}
  end
  return run .. ':' .. replid .. ':'
end

-- ---- Recognising the values of this library. Other programs can create a key of any name, and a client may lock a
-- resource that has the name of a key beside another resource. Therefore no script changes an existing key beside a
-- resource before one of these functions has recognised its value.

-- Returns the text in a key. Returns false if the key does not exist, and nil if it holds another type. If the Redis
-- user may not read the key, the script ends with the error of the server. A vote of the node would mean nothing then.
local function text_in(key)
  local held = redis.pcall('get', key)
  if type(held) ~= 'table' then return held end
  if not string.find(held.err, 'WRONGTYPE', 1, true) then redis.call('get', key) end
end

-- Returns whether the text is an owner: 40 hex digits.
local function is_owner(text)
  return string.find(text, '^' .. string.rep('%x', 40) .. '$') ~= nil
end

-- Returns the number in a counter or a marker, whatever data it belongs to. Returns nil if the text is neither. No
-- number of this library reaches 9e15, the microseconds until the year 2255. From about this size on, Lua's numbers are
-- not exact, so a greater number is not accepted.
local function number_of_any_data(text)
  local number = string.match(text, '^' .. string.rep('.', 40) .. ':' .. string.rep('.', 40) .. ':(%d+)$')
  return number and tonumber(number) < 9e15 and tonumber(number) or nil
end

-- Returns the number in a counter or a marker if it belongs to the present data, that is, if `text` begins with `data`,
-- the prefix that identity_of_data() returns. Otherwise returns nil, as for a number that belongs to other data.
local function number_in(data, text)
  return string.sub(text, 1, #data) == data and tonumber(string.sub(text, #data + 1)) or nil
end

-- Counts one more holder in each of the n counters, which are KEYS from `first` on. Sets all of them to the largest new
-- count, with the expiry, and returns this count. A counter that is missing, or that belongs to other data than `data`,
-- starts again with the time of the server's clock. Returns nil and an error reply if one of these keys holds anything
-- but a count.
--
-- In the loop, `count` is first the number whatever data it belongs to, to recognise the key. (text_in() returns false
-- if the key is missing, and nil if it has another type.) Then `count` is the number if it belongs to `data`.
local function count_holder(data, n, first, expiry)
  local time = redis.call('time')
  local fence, seed = 0, time[1] * 1000000 + time[2]
  for i = first, first + n - 1 do
    local held = text_in(KEYS[i])
    local count = held and number_of_any_data(held)
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
--     0        a counter is missing or belongs to other data, and nothing was changed. The next acquisition must start
--              this counter with the time of the server's clock, so this function does not create it.
--     -count   the token is ahead of the server's clock by more than the expiry, and nothing was changed. `count` is
--              the largest of these counters. If they were raised to this token and then expired, a counter that starts
--              again with the server's clock could be smaller than the token.
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

-- ---- The queue of waiters (LockOptions::fair): a sorted set of tickets. A waiter is a client that waits for the
-- resource. The score of its ticket is the instant since which it waits, in microseconds of the server's clock. The
-- ticket is the channel to which the waiter is subscribed ('redlock:wake:' and 32 hex digits), then '|' and a number,
-- because several waits of one client can use the same channel. To *wake* the waiter is to publish the ticket on this
-- channel. A resource is *reserved* if its value is a ticket, which is that of the woken waiter. The reservation keeps
-- newcomers away from this node until the waiter has had time to make its attempt. It is not a grant: the woken waiter
-- must still acquire the resource on a majority of the nodes.

-- Returns whether the text is a ticket.
local function is_ticket(text)
  return string.find(text, '^redlock:wake:[^|]+|%d+$') ~= nil
end

-- Returns an error reply if the key of the queue is the sorted set of an application, which no script may change: its
-- first member is no ticket. Returns nil if the key is a queue or does not exist. Returns nil as well if ZRANGE fails,
-- because the Redis user may not use it or the key has another type. The later commands on this key then fail, too.
local function check_queue(queue)
  local first = redis.pcall('zrange', queue, 0, 0)[1]
  if first and not is_ticket(first) then return {err = 'WRONGTYPE ' .. queue .. ' holds no queue'} end
end

-- Puts back a ticket that was taken out of the queue. `popped` is the reply of ZPOPMIN: the ticket and its score. The
-- expiry is set again, because the queue has disappeared together with its expiry if this ticket was the last one. If
-- the queue had no expiry, or the expiry cannot be set, the ticket is dropped, because a queue without an expiry would
-- stay for ever.
local function put_back(queue, popped, expiry)
  if type(expiry) ~= 'number' or expiry <= 0 then return end
  redis.pcall('zadd', queue, popped[2], popped[1])
  if redis.pcall('pexpire', queue, expiry) ~= 1 then redis.pcall('zrem', queue, popped[1]) end
end

-- Wakes the next waiter: the first one in the queue that is still subscribed. Reserves the resource for it if the
-- resource is free. The tickets in front of its ticket have no waiter any more, and are dropped.
--
-- ARGV[1] depends on the calling script. In enter_queue, it is the ticket of the caller. If the caller is the next
-- waiter, it gets no message, because the reply tells it that the resource is reserved for it. In release, ARGV[1] is
-- an owner, or a ticket that the script has already removed from the queue. Then the next waiter always gets a message.
--
-- Looks at 128 tickets at most, because a server does nothing else meanwhile. Returns the number of woken waiters,
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

-- Removes the tickets of waiters that have given no sign of life for longer than `lifetime`, 16 at most, and records a
-- sign of life of the calling waiter, whose ticket is `ticket`. A waiter calls enter_queue again and again while it
-- waits, and each call is a sign of life. The signs are in a sorted set beside the queue: the score of a ticket is the
-- instant of its last call, in milliseconds of the server's clock. The tickets of clients that know nothing of this set
-- are not in it, and are not removed here.
--
-- Does nothing if the key of the signs holds anything but tickets, or if the Redis user may not use this key or set its
-- expiry. The first PEXPIRE only tests this permission. Without an expiry the key would stay for ever. The key is not
-- one of KEYS, although Redis wants all keys there. Redis checks the permissions for KEYS before it runs a script. It
-- would refuse the whole script to such a user, who could then not wait at all.
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

-- Removes tickets from the queue if their channel has no subscriber. Nobody could wake these waiters. Looks at 16
-- tickets in front of the caller's. The caller passes the microseconds of the present second as `number`, which serves
-- as a random number: each call looks at other tickets. Does nothing if the Redis user may not use ZRANGE or PUBSUB
-- NUMSUB. Such tickets then stay until a release finds them.
local function remove_waiters_without_listener(queue, ticket, number)
  local in_front = redis.pcall('zrank', queue, ticket)
  if type(in_front) ~= 'number' or in_front == 0 then return end
  local from = number % math.max(1, in_front - 15)
  local tickets = redis.pcall('zrange', queue, from, math.min(from + 15, in_front - 1))
  if #tickets == 0 then return end
  local channels = {}
  for i, it in ipairs(tickets) do channels[i] = string.match(it, '^[^|]*') end
  local listeners = redis.pcall('pubsub', 'numsub', unpack(channels))
  for i, it in ipairs(tickets) do
    if listeners[2 * i] == 0 and is_ticket(it) then redis.pcall('zrem', queue, it) end
  end
end

-- Removes the ticket of a waiter from the queue. Deletes the resource KEYS[1] if it is reserved for this waiter, that
-- is, if its value is the ticket. If the key of the resource has another type, the script ends with the error of GET.
local function leave_queue(queue, ticket)
  if redis.call('get', KEYS[1]) == ticket then redis.call('del', KEYS[1]) end
  redis.pcall('zrem', queue, ticket)
end

-- ---- Readers (LockOptions::shared) are locks that hold a resource together. The key of the readers, beside the
-- resource, is a sorted set of the owners of all readers. The score of a reader is the instant at which its ttl ends,
-- in milliseconds of the server's clock. While there are readers, the value of the resource itself is the *shared
-- marker*, 'redlock:shared'. This value keeps out every exclusive lock, also of clients that know nothing of readers.
-- Both keys expire with the last reader.

-- Returns the shared marker of this resource: 'redlock:shared', or 'redlock:shared-tag' if the name of the resource is
-- in braces, as in `{x}`. The readers of such a resource are in the key `{x}:tag-readers`. Earlier versions of this
-- library keep them under another key, with the marker 'redlock:shared'. Because the two markers differ, a client of an
-- earlier version and a client of this version cannot hold such a resource together. With the same marker they would,
-- although neither counts the readers of the other.
local function shared_marker(readers)
  return string.sub(readers, -12) == ':tag-readers' and 'redlock:shared-tag' or 'redlock:shared'
end

-- Returns three values: the key of the readers, which is KEYS[2]; the time of the server's clock in milliseconds; and
-- an error reply if the key holds anything but readers, otherwise nil.
local function check_readers()
  local readers, time = KEYS[2], redis.call('time')
  local first = redis.call('zrange', readers, 0, 0)[1]
  local failure = first and not is_owner(first) and {err = 'WRONGTYPE ' .. readers .. ' holds no readers'} or nil
  return readers, time[1] * 1000 + math.floor(time[2] / 1000), failure
end

-- Removes the readers whose ttl has ended.
local function remove_ended_readers(readers, now)
  redis.call('zremrangebyscore', readers, '-inf', string.format('(%.0f', now))
end

-- Sets the expiry of the resource and of the set of readers to the instant at which the ttl of the last reader ends.
-- Changes the resource only while its value is the shared marker, and deletes it if there is no reader left.
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

-- Returns whether the resource exists and its value is not the shared marker, so that no reader may enter. An exclusive
-- lock (a *writer*) holds the resource then, or it is reserved for a waiter, or its minimum hold time is not over, or
-- the key is not one of this library.
local function held_by_writer(readers)
  local held = text_in(KEYS[1])
  return held ~= false and held ~= shared_marker(readers)
end

-- Adds the owner ARGV[1] to the readers, with the ttl ARGV[3]. PEXPIREAT comes first: if the Redis user may not use it,
-- the script ends before it adds the reader, and leaves no readers without an expiry. If the key of the readers does
-- not exist yet, follow_last_reader() sets its expiry.
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
