-- Releases one reader (see the part on readers in prelude.lua). Deletes the resource if this reader was the last one.
-- Wakes no client in the queue of the resource. Such a client asks the node again after a poll interval.
-- KEYS: the resource, its readers. ARGV: owner. Returns 1 if the owner was one of the readers, otherwise 0.
local readers, now, failure = check_readers()
if failure then return failure end
remove_ended_readers(readers, now)
local removed = redis.call('zrem', readers, ARGV[1])
follow_last_reader(readers)
return removed
