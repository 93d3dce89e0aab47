-- Acquires a resource for a reader. Other readers may hold the resource at the same time. With a counter, counts the
-- holders, both readers and exclusive ones (the first round of fencing).
-- KEYS: the resource, its readers, [its counter], [the marker], see read_layout().
-- ARGV: owner, layout, ttl, expiry of the counter, quarantine.
-- Returns 0 if the resource is held and does not belong to readers; otherwise the count, or 1 without a counter.
local _, first = read_layout()
local readers, now, failure = check_readers(KEYS[first.r])
if failure then return failure end
local data
data, failure = check_vote(first)
if failure then return failure end
remove_ended_readers(readers, now)
if held_by_writer(readers) then return 0 end
local count = 1
if first.c then
  count, failure = count_holder(data, 1, first.c, ARGV[4])
  if failure then return failure end
end
enter_readers(readers, now)
return count
