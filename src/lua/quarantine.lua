-- The functions of the prelude that decide whether a node may vote. A node is one of the N independent Redis masters
-- that vote on a lock. If it has lost its data, it may have forgotten who holds what. For the time of its *quarantine*
-- (NodesOptions::quarantine) it therefore declines to vote. The functions call functions of prelude.lua.
--
-- The *marker* is the key in which a node stores since when it has had its data. The quarantine and the instant in the
-- marker are in microseconds. A *counter* is a key in which a node counts the holders of a resource, for the fencing
-- token.

-- Returns nil if the node may vote, otherwise the reply with which it declines. A node may vote if it is known to have
-- had its data for at least the time of the quarantine. `data` is the prefix that identifies the present data, see
-- identity_of_data(). The reply during a quarantine is a status and no error, because nothing is wrong: the client
-- recognises it by the word QUARANTINED.
--
-- The last of KEYS is the marker. It holds `data`, and the instant since which the server has had these data. If the
-- data are lost, the marker is lost as well, and the next command writes it again with the present instant. If the key
-- holds anything but a marker, the reply is an error. If the server's clock was set back, the node has to wait longer.
--
-- The marker expires if no script has used it for a long time: about 14 days at least, and about the time of the
-- quarantine at least. The quarantine then begins again, although the data are not lost. The expiry is 28 days
-- (2419200000 ms) or twice the quarantine, and is set again when half of it is over. (The quarantine is in microseconds
-- and the expiry in milliseconds, so twice the quarantine is quarantine / 500. Lua converts the text `expiry` to a
-- number in expiry / 2.)
local function check_age(data, quarantine)
  local marker, time = KEYS[#KEYS], redis.call('time')
  local now = time[1] * 1000000 + time[2]
  local value = redis.call('get', marker)
  if value and not number_of_any_data(value) then return {err = 'WRONGTYPE ' .. marker .. ' holds no marker'} end
  local since = value and number_in(data, value)
  local expiry = string.format('%.0f', math.max(2419200000, quarantine / 500))
  if not since then
    since = now
    redis.call('set', marker, data .. string.format('%.0f', now), 'px', expiry)
  end
  if since + quarantine > now then
    return {ok = string.format('QUARANTINED for another %.0f ms', (since + quarantine - now) / 1000)}
  end
  if redis.call('pttl', marker) < expiry / 2 then redis.call('pexpire', marker, expiry) end
end

-- Returns two values: the prefix that identifies the present data, and nil or the reply with which the node declines to
-- vote.
-- `counting` says whether the script uses counters. Returns nothing if the vote depends neither on counters nor on a
-- quarantine. The quarantine is the last of ARGV, and empty if the node has none.
local function check_vote(counting)
  local quarantine = ARGV[#ARGV]
  if not counting and quarantine == '' then return end
  local data, failure = identity_of_data()
  if not failure and quarantine ~= '' then failure = check_age(data, tonumber(quarantine)) end
  return data, failure
end
