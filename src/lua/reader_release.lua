-- Releases one reader; deletes the resource if it was the last one.
-- KEYS: the resource, its readers. ARGV: owner. Returns 1 if this reader held the resource, otherwise 0.
local readers, now, failure = take_readers()
if failure then return failure end
remove_ended_readers(readers, now)
local removed = redis.call('zrem', readers, ARGV[1])
follow_last_reader(readers)
return removed
