-- Raises the counter of a resource that the reader holds, as raise_counts does for an exclusive lock.
-- KEYS: the resource, its readers, its counter, [the marker], see read_layout().
-- ARGV: owner, layout, fencing token, expiry of the counter, quarantine. Returns what raise_counts returns.
local _, first = read_layout()
local readers, now, failure = check_readers(KEYS[first.r])
if failure then return failure end
local data
data, failure = check_vote(first)
if failure then return failure end
remove_ended_readers(readers, now)
if not end_of_reader(readers) then return 0 end
return raise_counters(data, 1, first.c)
