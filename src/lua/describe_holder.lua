-- Writes the description of the holder, a text such as host and process for people to read, beside each resource that
-- holds the owner, with the remaining time of the resource. Deletes the owner's description beside the other resources.
-- A description consists of the owner, a blank and the text. The key of the description may have another value, because
-- it may be a resource of this name that somebody has locked. Such a key is not changed.
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
