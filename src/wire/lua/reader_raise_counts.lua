-- If the reader holds the resource, raises the counter of the resource to the fencing token. raise_counts.lua does the
-- same for other locks, and explains the words.
-- KEYS: the resource, its readers, its counter, [the marker].
-- ARGV: owner, number of resources (always 1), fencing token, expiry of the counter, [quarantine].
-- Returns what raise_counts.lua returns.
local readers, now, foreign = check_readers()
if foreign then return foreign end
local data, failure = check_vote(true)
if failure then return failure end
remove_ended_readers(readers, now)
if not end_of_reader(readers) then return 0 end
return raise_counters(data, 1, 3)
