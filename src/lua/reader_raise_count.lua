-- Raises the counter of a resource that the reader holds, as raise_count does for an exclusive lock.
-- KEYS: the resource, its readers, its counter, the marker if there is a quarantine.
-- ARGV: owner, fencing token, number of resources (always 1), expiry of the counter, quarantine.
-- Returns what raise_count returns.
local readers, now, foreign = take_readers()
if foreign then return foreign end
local data, no_vote = check_counting()
if no_vote then return no_vote end
remove_ended_readers(readers, now)
if not end_of_reader(readers) then return 0 end
return raise_counters(data, 1)
