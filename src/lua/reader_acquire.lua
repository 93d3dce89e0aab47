-- Acquires a resource for a reader. Other readers may hold the resource at the same time. With a counter, counts the
-- holders, both readers and exclusive ones (the first round of fencing).
-- KEYS: the resource, its readers, [its counter], [the marker]. Keys in brackets are there if their argument is not empty.
-- ARGV: owner, number of resources (always 1), ttl, [expiry of the counter], [quarantine].
-- Returns 0 if the resource is held and does not belong to readers; otherwise the count, or 1 without a counter.
local readers, now, failure = check_readers()
if failure then return failure end
local expiry, data = ARGV[4], nil
data, failure = check_vote(expiry ~= '')
if failure then return failure end
remove_ended_readers(readers, now)
if held_by_writer(readers) then return 0 end
local count = 1
if expiry ~= '' then
  count, failure = count_holder(data, 1, 3, expiry)
  if failure then return failure end
end
enter_readers(readers, now)
return count
