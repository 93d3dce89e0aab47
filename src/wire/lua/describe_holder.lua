-- Writes the description of the holder, a text for people, beside each resource that holds the owner. It expires
-- together with the resource. If a resource does not hold the owner, or the text is empty, deletes the description of
-- this owner. (The release can arrive later, on another connection.) The value of a description is the owner, a blank
-- and the text. A key with any other value belongs to another program, and is not changed.
-- KEYS: the resources, the keys of their descriptions. ARGV: owner, description. Returns 1.
local n = #KEYS / 2
for i = 1, n do
  local key = KEYS[n + i]
  local value = redis.pcall('get', key)
  local owner = type(value) == 'string' and string.sub(value, 41, 41) == ' ' and string.sub(value, 1, 40)
  if ARGV[2] ~= '' and text_in(KEYS[i]) == ARGV[1] then
    local left = redis.call('pttl', KEYS[i])
    -- The key is missing or holds a description, maybe of another owner.
    local ours = not value or owner and is_owner(owner)
    if left > 0 and ours then redis.call('set', key, ARGV[1] .. ' ' .. ARGV[2], 'px', left) end
  elseif owner == ARGV[1] then
    redis.call('del', key)
  end
end
return 1
