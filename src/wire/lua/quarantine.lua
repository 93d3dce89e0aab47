-- The functions that decide whether a node may vote, for the scripts. A node is one of the N independent Redis masters
-- that vote on a lock. If it has lost its data, it may have forgotten the holders of locks. Therefore it does not vote
-- until it has had its data for the time of its *quarantine* (NodesOptions::quarantine). The functions call functions
-- of prelude.lua.

-- Returns nil if the node may vote, otherwise the reply for the client. `data` identifies the present data, see
-- identity_of_data(). The quarantine is in microseconds.
--
-- The last of KEYS is the *marker*. Its value is `data` and the instant since which the server has had these data, in
-- microseconds. If the data are lost, the marker is lost as well, and this function writes it again with the present
-- instant. If the key holds anything else, the reply is an error. During the quarantine the reply is a status, which
-- the client recognises by the word QUARANTINED.
--
-- The marker expires after 28 days (2419200000 ms), or twice the quarantine if that is longer. The expiry is set again
-- when half of it is over. If no script uses the marker for half of the expiry, it can expire, and the quarantine
-- begins again although no data are lost. (Twice the quarantine in milliseconds is quarantine / 500.)
local function check_age(data, quarantine)
  local marker, time = KEYS[#KEYS], redis.call('time')
  local now = time[1] * 1000000 + time[2]
  local value = text_in(marker)
  -- The client recognises this text, because another WRONGTYPE means that the resource is not the owner's (reply.hpp).
  if value == nil or value and not number_of_any_data(value) then
    return {err = 'WRONGTYPE ' .. marker .. ' holds no marker'}
  end
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

-- Returns identity_of_data(), and nil if the node may vote, otherwise the reply for the client. `counting` is true if
-- the script uses counters of holders. The quarantine is the last of ARGV, and empty if the node has none. Without
-- counters and quarantine, returns nothing, because the vote does not depend on the data.
local function check_vote(counting)
  local quarantine = ARGV[#ARGV]
  if not counting and quarantine == '' then return end
  local data, failure = identity_of_data()
  if not failure and quarantine ~= '' then failure = check_age(data, tonumber(quarantine)) end
  return data, failure
end
