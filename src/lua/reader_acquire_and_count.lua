-- Acquires as reader_acquire does, and counts the holders, both readers and exclusive ones (fencing).
-- KEYS: the resource, its readers, its counter, the marker if there is a quarantine.
-- ARGV: owner, ttl, number of resources (always 1), expiry of the counter, quarantine.
-- Returns the count, or 0 if the resource is held and does not belong to readers.
local readers, now, foreign = take_readers()
if foreign then return foreign end
local data, no_vote = check_counting()
if no_vote then return no_vote end
remove_ended_readers(readers, now)
if held_by_writer(readers) then return 0 end
local fence, failure = count_holder(data, 1)
if failure then return failure end
enter_readers(readers, now)
return fence
