-- Writes the description of the holder, a text such as host and process for people to read, beside each resource that
-- holds the owner. The description expires together with the resource. Beside each resource that does not hold the
-- owner, deletes the description if it is of this owner.
-- A description consists of the owner, a blank and the text. Somebody may have locked a resource that has the name of
-- this key. A key with such a value, or any other that is no description, is not changed. (`ours` is true if the key is
-- missing or holds a description, even one of another owner.)
-- KEYS: the resources, the keys of their descriptions. ARGV: owner, description. Returns 1.
local n = #KEYS / 2
for i = 1, n do
  local key = KEYS[n + i]
  local value = redis.pcall('get', key)
  local owner = type(value) == 'string' and string.sub(value, 41, 41) == ' ' and string.sub(value, 1, 40)
  if redis.call('get', KEYS[i]) == ARGV[1] then
    local left = redis.call('pttl', KEYS[i])
    local ours = not value or owner and is_owner(owner)
    if left > 0 and ours then redis.call('set', key, ARGV[1] .. ' ' .. ARGV[2], 'px', left) end
  elseif owner == ARGV[1] then
    redis.call('del', key)
  end
end
return 1
