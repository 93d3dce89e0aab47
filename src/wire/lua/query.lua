-- Reports the state of a resource and of the keys beside it. A value that the Redis user may not read is reported as 0
-- or as an empty text. Long texts are cut, because any client can put any text there.
-- KEYS: the resource, its queue, the description that its holder has left, its readers, and its counter (prelude.lua);
-- or the resource alone if the user may not use the other keys.
-- Returns one line, and behind it the value of the resource and the description, without a separator. The line has the
-- type of the resource, its remaining time to live in milliseconds, the number of waiting clients, the number of
-- readers, the number in the counter (0 if there is none), and the length of the value.
local function text(key, max_length)
  local value = redis.pcall('get', key)
  return type(value) == 'string' and string.sub(value, 1, max_length) or ''
end
local function number(value)
  return type(value) == 'number' and value or 0
end
local kind = redis.call('type', KEYS[1]).ok
local owner = text(KEYS[1], 512)
local waiters, description, readers, count = 0, '', 0, 0
if KEYS[2] then
  waiters = number(redis.pcall('zcard', KEYS[2]))
  description = text(KEYS[3], 2048)
  local time = redis.pcall('time')
  local now = time[1] and string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) or '-inf'
  readers = number(redis.pcall('zcount', KEYS[4], now, '+inf'))
  count = number_of_any_data(text(KEYS[5], 128)) or 0
end
return string.format(
  '%s %.0f %.0f %.0f %.0f %.0f\n', kind, redis.call('pttl', KEYS[1]), waiters, readers, count, #owner
) .. owner .. description
