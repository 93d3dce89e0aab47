// The Lua scripts that the nodes run, each as one step: nothing comes in between.
//
// Numbers of microseconds go through string.format('%.0f'): Lua itself would write 1.76e+15.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace redlock::detail {

/// A Lua script and the name under which a server that has seen it knows it.
struct Script {
    std::string_view text;
    std::string_view sha1;
};

/// Whose data these are, as `data`: which run of which server, and in which of its times as a master. All
/// that a server remembers of its locks bears that name; what bears another was made elsewhere, or before,
/// and has come by replication, with an old file, or back from a server that was the master meanwhile.
#define REDLOCK_WHOSE_DATA                                                                         \
    "local info=redis.call('info','server')..redis.call('info','replication') "                    \
    "local run,replid=string.match(info,'run_id:(%C+)'),string.match(info,'master_replid:(%C+)') " \
    "if not (run and replid and string.find(info,'role:master',1,true)) then "                     \
    "return {err='READONLY its INFO does not say role:master, run_id and master_replid'} end "     \
    "local data=run..':'..replid..':' "                                                            \
    "local function number_in(text) "                                                              \
    "return string.sub(text,1,#data)==data and tonumber(string.sub(text,#data+1)) or nil "         \
    "end "

/// A node that is not known to have had its data for the whole quarantine, q, has no vote. Since when it has
/// had them is the value of the marker, the last of KEYS, which goes when the data go; the first command
/// makes it. A clock that was set back counts against the node.
#define REDLOCK_CHECK_DATA_AGE                                                                             \
    "local marker,t=KEYS[#KEYS],redis.call('time') "                                                       \
    "local now=t[1]*1000000+t[2] "                                                                         \
    "local since=number_in(redis.call('get',marker) or '') "                                               \
    "local keep=string.format('%.0f',math.max(2419200000,q/500)) "                                         \
    "if not since then since=now redis.call('set',marker,data..string.format('%.0f',now),'px',keep) end "  \
    "if since+q>now then return {ok=string.format('QUARANTINED for another %.0f ms',(since+q-now)/1000)} " \
    "end "                                                                                                 \
    "if redis.call('pttl',marker)<keep/2 then redis.call('pexpire',marker,keep) end "

/// What a script begins with that asks for a vote. The quarantine is the last of ARGV, in microseconds; 0:
/// there is none.
#define REDLOCK_QUARANTINE           \
    "local q=tonumber(ARGV[#ARGV]) " \
    "if q>0 then " REDLOCK_WHOSE_DATA REDLOCK_CHECK_DATA_AGE "end "

/// The same where the vote comes with a count.
#define REDLOCK_COUNTING \
    "local q=tonumber(ARGV[#ARGV]) " REDLOCK_WHOSE_DATA "if q>0 then " REDLOCK_CHECK_DATA_AGE "end "

/// The page's release: delete only if the value is still ours (S8).
/// KEYS: the resource. ARGV: owner.
inline constexpr Script compare_and_delete{
    "if redis.call('get',KEYS[1]) == ARGV[1] then "
    "return redis.call('del',KEYS[1]) "
    "else return 0 end",
    "ae3671744a5dbb24ea37ef607b8b10ac7856d43e"};

/// The page's extension (S31), which never shortens: a late one must not undo a longer one.
/// KEYS: the resource. ARGV: owner, ttl.
inline constexpr Script compare_and_expire{
    "if redis.call('get',KEYS[1]) == ARGV[1] then "
    "if redis.call('pttl',KEYS[1]) < tonumber(ARGV[2]) then redis.call('pexpire',KEYS[1],ARGV[2]) end "
    "return 1 "
    "else return 0 end",
    "c8140c4860286b83b82bb0cd9431d09f0be019e3"};

/// The same release of several resources; 1 if all were ours.
/// KEYS: the resources. ARGV: owner.
inline constexpr Script delete_all{
    "local deleted=0 "
    "for i=1,#KEYS do if redis.call('get',KEYS[i])==ARGV[1] then deleted=deleted+redis.call('del',KEYS[i]) "
    "end end "
    "if deleted==#KEYS then return 1 else return 0 end",
    "411a2e37351665b737206bf11c00eb09dd87e31f"};

/// The same extension of several resources, or with a quarantine.
/// KEYS: the resources, the marker. ARGV: owner, ttl, number of resources, quarantine.
inline constexpr Script expire_all{REDLOCK_QUARANTINE
                                   "local n=tonumber(ARGV[3]) "
                                   "for i=1,n do if redis.call('get',KEYS[i])~=ARGV[1] then return 0 end end "
                                   "for i=1,n do if redis.call('pttl',KEYS[i])<tonumber(ARGV[2]) then "
                                   "redis.call('pexpire',KEYS[i],ARGV[2]) end end "
                                   "return 1",
                                   "426e3422f222b8f7031e320ae185e9282518aacb"};

/// SET NX PX of several resources, or with a quarantine.
/// KEYS: the resources, the marker. ARGV: owner, ttl, number of resources, quarantine.
inline constexpr Script set_all{REDLOCK_QUARANTINE
                                "local n=tonumber(ARGV[3]) "
                                "for i=1,n do if redis.call('exists',KEYS[i])==1 then return 0 end end "
                                "for i=1,n do redis.call('set',KEYS[i],ARGV[1],'px',ARGV[2]) end "
                                "return 1",
                                "44907592eef155410bdb8442b828f9700013c180"};

/// Counts one more holder in each of the n counters, which are KEYS from n + 1 on: `fence` is the new count.
/// One that others' data have brought here is begun anew, with the wall clock.
#define REDLOCK_COUNT                                                                                        \
    "local t=redis.call('time') "                                                                            \
    "local fence,seed=0,t[1]*1000000+t[2] "                                                                  \
    "for i=n+1,2*n do "                                                                                      \
    "local held=redis.pcall('get',KEYS[i]) "                                                                 \
    "local count=type(held)=='string' and tonumber(string.match(held,'^[^:]+:[^:]+:(%d+)$') or '') "         \
    "if held and not (count and count<9e15) then return {err='WRONGTYPE '..KEYS[i]..' holds no count'} end " \
    "count=held and number_in(held) "                                                                        \
    "fence=math.max(fence,count and count+1 or seed) "                                                       \
    "end "                                                                                                   \
    "for i=n+1,2*n do redis.call('set',KEYS[i],data..string.format('%.0f',fence),'px',ARGV[4]) end "

/// The same with a count of the holders of each resource. All are set to the largest, which is the answer.
/// KEYS: the resources, their counters, the marker. ARGV: owner, ttl, number of resources, the counters'
/// expiry, quarantine.
inline constexpr Script set_and_count{
    REDLOCK_COUNTING
    "local n=tonumber(ARGV[3]) "
    "for i=1,n do if redis.call('exists',KEYS[i])==1 then return 0 end end " REDLOCK_COUNT
    "for i=1,n do redis.call('set',KEYS[i],ARGV[1],'px',ARGV[2]) end "
    "return fence",
    "3df90ebce870c0b9c5852ae11a3c13ed3cc08328"};

/// Raises those counters to ARGV[2], and answers.
#define REDLOCK_RAISE                                                                  \
    "local count=0 "                                                                   \
    "for i=n+1,2*n do "                                                                \
    "local held=number_in(redis.call('get',KEYS[i]) or '') "                           \
    "if not held then return 0 end "                                                   \
    "count=math.max(count,held) "                                                      \
    "end "                                                                             \
    "local t=redis.call('time') "                                                      \
    "if tonumber(ARGV[2])>t[1]*1000000+t[2]+ARGV[4]*1000 then return -count end "      \
    "for i=n+1,2*n do if number_in(redis.call('get',KEYS[i]))<tonumber(ARGV[2]) then " \
    "redis.call('set',KEYS[i],data..ARGV[2],'px',ARGV[4]) end end "                    \
    "return 1"

/// Raises the counters, but makes none: a missing one is to be seeded by the next grant. Nor does it raise
/// them so far that a seed could be smaller once they have expired: the answer is then minus the count.
/// KEYS: the resources, their counters, the marker. ARGV: owner, fence, number of resources, the counters'
/// expiry, quarantine.
inline constexpr Script raise_count{
    REDLOCK_COUNTING
    "local n=tonumber(ARGV[3]) "
    "for i=1,n do if redis.call('get',KEYS[i])~=ARGV[1] then return 0 end end " REDLOCK_RAISE,
    "e0185dc19c37dc166cf0c4472aead9b9b2734b0a"};

// ---- The queue of waiters (LockOptions::fair): a sorted set of tickets by age. A ticket is the channel that
// its waiter listens to, '|', a number. What stands under a resource in place of an owner, with a '|' in it,
// is a ticket, too: a reservation, which is nobody's vote. It keeps newcomers away from this node until the
// waiter has had time to make its round.

/// Hands the resource, if it is free, to the first in the queue whose waiter hears it: the others have gone.
/// A waiter that is the caller itself need not be told. 128 in one go at most: a server does nothing else
/// meanwhile. The answer: how many were woken, or the error that publishing ran into.
#define REDLOCK_WAKE_NEXT                                                                         \
    "local function wake_next(resource,queue,patience) "                                          \
    "for _=1,128 do "                                                                             \
    "local first=redis.pcall('zpopmin',queue) "                                                   \
    "local ticket=first[1] "                                                                      \
    "if not ticket then return 0 end "                                                            \
    "local bar=string.find(ticket,'|',1,true) "                                                   \
    "if bar then "                                                                                \
    "local heard=1 "                                                                              \
    "if ticket~=ARGV[1] then heard=redis.pcall('publish',string.sub(ticket,1,bar-1),ticket) end " \
    "if type(heard)~='number' then redis.pcall('zadd',queue,first[2],ticket) return heard end "   \
    "if heard>0 then redis.pcall('set',resource,ticket,'nx','px',patience) return 1 end "         \
    "end "                                                                                        \
    "end "                                                                                        \
    "return 0 "                                                                                   \
    "end "

/// compare_and_delete that wakes the next waiter. Where the key is not ours the next one is woken as well,
/// for it may get a majority elsewhere; but not by a release that is repeated, nor where another was woken
/// already. Whatever is wrong with the queue, the key is deleted. Mostly nobody waits, and it is as short as
/// compare_and_delete.
/// KEYS: the resources, their queues. ARGV: owner, ticket of a waiter that leaves (or empty), how long a
/// reservation lasts, 1 unless repeated. The answer: 1 if all were ours; 2 more if a waiter was woken.
inline constexpr Script delete_and_wake{
    "if ARGV[2]=='' and #KEYS==2 and redis.call('exists',KEYS[2])==0 then "
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end "
    "end " REDLOCK_WAKE_NEXT
    "local n=#KEYS/2 "
    "local deleted,woken=0,0 "
    "for i=1,n do "
    "local held=redis.call('get',KEYS[i]) "
    "local ours=held==ARGV[1] "
    "if ours then deleted=deleted+redis.call('del',KEYS[i]) end "
    "if ARGV[2]~='' then redis.pcall('zrem',KEYS[n+i],ARGV[2]) end "
    "local reserved=held and string.find(held,'|',1,true) "
    "if (ours or (ARGV[4]=='1' and not reserved)) and wake_next(KEYS[i],KEYS[n+i],ARGV[3])==1 then woken=2 "
    "end "
    "end "
    "return (deleted==n and 1 or 0)+woken",
    "3cfc4720a072c4717e197d50f637bda15fa46978"};

/// Enters the queue, or stays in it, and learns who is in front. A resource that is free goes to the first in
/// the queue: its holder has died, or was none of those that wake others.
/// KEYS: the resource, its queue. ARGV: ticket, how long a reservation lasts, how long the waiter has waited
/// (in microseconds), how long the queue lives on, 1 if the caller may be given the resource now. The answer:
/// RESERVED, or WAITING with the rest of the time to live of what stands there (in milliseconds), how many
/// are in front, and what stands there: holder, reservation, nothing.
inline constexpr Script enter_queue{
    REDLOCK_WAKE_NEXT
    "local held=redis.call('get',KEYS[1]) "
    "if held==ARGV[1] then return {ok='RESERVED'} end "
    "local t=redis.call('time') "
    "redis.call('zadd',KEYS[2],'nx',string.format('%.0f',t[1]*1000000+t[2]-ARGV[3]),ARGV[1]) "
    "redis.call('pexpire',KEYS[2],ARGV[4]) "
    "if not held and ARGV[5]=='1' then "
    "local woken=wake_next(KEYS[1],KEYS[2],ARGV[2]) "
    "if type(woken)~='number' then return woken end "
    "held=redis.call('get',KEYS[1]) "
    "if held==ARGV[1] then return {ok='RESERVED'} end "
    "end "
    "local what=not held and 'nothing' or string.find(held,'|',1,true) and 'reservation' or 'holder' "
    "return {ok=string.format('WAITING %.0f %.0f %s',redis.call('pttl',KEYS[1]),"
    "redis.call('zrank',KEYS[2],ARGV[1]) or 0,what)}",
    "f45b0a74b53602fcc6c1a9c0806f47e117e117a7"};

#undef REDLOCK_WAKE_NEXT

/// What a waiter's round begins with on each node: it leaves the queue, and the reservation that may stand
/// there for it makes room. The second of KEYS is the queue and the second of ARGV the ticket, the rest are
/// those of the script that follows.
inline constexpr std::string_view leave_queue =
    "local queue,ticket=table.remove(KEYS,2),table.remove(ARGV,2) "
    "if redis.call('get',KEYS[1])==ticket then redis.call('del',KEYS[1]) end "
    "redis.pcall('zrem',queue,ticket) ";

/// The text of `script` behind `leave_queue`.
template <const Script& script>
inline constexpr auto behind_leave_queue = [] {
    std::array<char, leave_queue.size() + script.text.size()> text{};
    std::copy(script.text.begin(), script.text.end(),
              std::copy(leave_queue.begin(), leave_queue.end(), text.begin()));
    return text;
}();

/// SET NX PX of a resource that was waited for.
/// KEYS: the resource, its queue, the marker. ARGV: owner, ticket, ttl, 1, quarantine.
inline constexpr Script leave_and_set{
    {behind_leave_queue<set_all>.data(), behind_leave_queue<set_all>.size()},
    "1addddcd0d945e17a07429b8141dd961e3b2b335"};

/// The same with a count of the holders.
/// KEYS: the resource, its queue, its counter, the marker. ARGV: owner, ticket, ttl, 1, the counter's expiry,
/// quarantine.
inline constexpr Script leave_and_count{
    {behind_leave_queue<set_and_count>.data(), behind_leave_queue<set_and_count>.size()},
    "b73d73cd73fa24854339b7bafc45dbb5f90a4cd9"};

// ---- Readers (LockOptions::shared): a sorted set of their owners by when each ends, in milliseconds of the
// server's clock. While there are any, the resource itself holds `shared_marker`, which keeps every ordinary
// lock out, also those of other clients that know of no readers. Both keys expire with the last reader.

#define REDLOCK_SHARED_MARKER "redlock:shared"
inline constexpr std::string_view shared_marker = REDLOCK_SHARED_MARKER;

/// What each begins with. Those that have ended go first. What comes after finds KEYS as those of an ordinary
/// lock.
#define REDLOCK_READERS                                        \
    "local readers,t=table.remove(KEYS,2),redis.call('time') " \
    "local now=t[1]*1000+math.floor(t[2]/1000) "
#define REDLOCK_PRUNE_READERS "redis.call('zremrangebyscore',readers,'-inf',string.format('(%.0f',now)) "

/// And ends with. The resource's expiry is that of the last reader, also where it was another: but only
/// while it is the readers', and not an ordinary lock's.
#define REDLOCK_FOLLOW_LAST_READER                                     \
    "local marked=redis.pcall('get',KEYS[1])=='" REDLOCK_SHARED_MARKER \
    "' "                                                               \
    "local last=redis.call('zrange',readers,-1,-1,'withscores')[2] "   \
    "if last then redis.call('pexpireat',readers,last) end "           \
    "if marked and last then redis.call('pexpireat',KEYS[1],last) "    \
    "elseif marked then redis.call('del',KEYS[1]) end "

#define REDLOCK_UNLESS_HELD_BY_WRITER        \
    "local held=redis.pcall('get',KEYS[1]) " \
    "if held and held~='" REDLOCK_SHARED_MARKER "' then return 0 end "
#define REDLOCK_UNLESS_READING                         \
    "local ends=redis.call('zscore',readers,ARGV[1]) " \
    "if not ends or redis.pcall('get',KEYS[1])~='" REDLOCK_SHARED_MARKER "' then return 0 end "

#define REDLOCK_ENTER_READERS                                               \
    "redis.call('zadd',readers,string.format('%.0f',now+ARGV[2]),ARGV[1]) " \
    "redis.call('set',KEYS[1],'" REDLOCK_SHARED_MARKER "','px',ARGV[2]) " REDLOCK_FOLLOW_LAST_READER

/// Beside other readers. An ordinary lock excludes it.
/// KEYS: the resource, its readers, the marker of a quarantine. ARGV: owner, ttl, 1, quarantine.
inline constexpr Script share{REDLOCK_READERS REDLOCK_QUARANTINE REDLOCK_PRUNE_READERS
                                  REDLOCK_UNLESS_HELD_BY_WRITER REDLOCK_ENTER_READERS "return 1",
                              "bd1b4ae69d79d2e7c23f8fcd2045db3657fc47d9"};

/// The same with a count of the holders, readers and others.
/// KEYS: the resource, its readers, its counter, the marker of a quarantine. ARGV: owner, ttl, 1, the
/// counter's expiry, quarantine.
inline constexpr Script share_and_count{
    REDLOCK_READERS REDLOCK_COUNTING REDLOCK_PRUNE_READERS REDLOCK_UNLESS_HELD_BY_WRITER
    "local n=1 " REDLOCK_COUNT REDLOCK_ENTER_READERS "return fence",
    "9b0918551976bf2b973e2932d2d58567c0884108"};

/// Lengthens the time of one reader, and makes nothing anew: a marker that has gone has let others in.
/// KEYS: the resource, its readers, the marker of a quarantine. ARGV: owner, ttl, 1, quarantine.
inline constexpr Script stay{REDLOCK_READERS REDLOCK_QUARANTINE REDLOCK_PRUNE_READERS REDLOCK_UNLESS_READING
                             "if tonumber(ends)<now+ARGV[2] then "
                             "redis.call('zadd',readers,string.format('%.0f',now+ARGV[2]),ARGV[1]) "
                             "end " REDLOCK_FOLLOW_LAST_READER "return 1",
                             "088bfd8ad44d2280b47ca1d94f7e447ec6ad2eae"};

/// One reader leaves.
/// KEYS: the resource, its readers. ARGV: owner.
inline constexpr Script leave{REDLOCK_READERS REDLOCK_PRUNE_READERS
                              "local left=redis.call('zrem',readers,ARGV[1]) " REDLOCK_FOLLOW_LAST_READER
                              "return left",
                              "d74c390744d02c922a63d8b9e939015b03eac63a"};

/// raise_count for a reader.
/// KEYS: the resource, its readers, its counter, the marker of a quarantine. ARGV: owner, fence, 1, the
/// counter's expiry, quarantine.
inline constexpr Script raise_as_reader{
    REDLOCK_READERS REDLOCK_COUNTING REDLOCK_PRUNE_READERS REDLOCK_UNLESS_READING "local n=1 " REDLOCK_RAISE,
    "39457eb69b0da0f0c661584259bf3befbb154d6d"};

#undef REDLOCK_ENTER_READERS
#undef REDLOCK_UNLESS_READING
#undef REDLOCK_UNLESS_HELD_BY_WRITER
#undef REDLOCK_FOLLOW_LAST_READER
#undef REDLOCK_PRUNE_READERS
#undef REDLOCK_READERS
#undef REDLOCK_SHARED_MARKER
#undef REDLOCK_RAISE
#undef REDLOCK_COUNT
#undef REDLOCK_COUNTING
#undef REDLOCK_QUARANTINE
#undef REDLOCK_CHECK_DATA_AGE
#undef REDLOCK_WHOSE_DATA

/// A release before LockOptions::at_least is over: nobody's value, for the rest of the time. To shorten the
/// life of our own would not do: an extension that arrives late would bring the whole ttl back.
/// KEYS: the resources. ARGV: owner, the rest. The answer: 1 if all were ours.
inline constexpr Script rest_all{
    "local kept=0 "
    "for i=1,#KEYS do if redis.call('get',KEYS[i])==ARGV[1] then "
    "redis.call('set',KEYS[i],'redlock:rest','px',ARGV[2]) kept=kept+1 end end "
    "if kept==#KEYS then return 1 else return 0 end",
    "cf7fa3efe9edd329c3990a36e8d11f661321bfcb"};

/// What the holder says of itself, as long as the resource is its own, and no longer.
/// KEYS: the resources, what stands beside them. ARGV: owner, note.
inline constexpr Script note_holder{
    "local n=#KEYS/2 "
    "for i=1,n do "
    "local note=KEYS[n+i] "
    "if redis.call('get',KEYS[i])==ARGV[1] then "
    "local left=redis.call('pttl',KEYS[i]) "
    "if left>0 then redis.call('set',note,ARGV[1]..' '..ARGV[2],'px',left) end "
    "else "
    "local held=redis.pcall('get',note) "
    "if type(held)=='string' and string.sub(held,1,#ARGV[1])==ARGV[1] then redis.call('del',note) end "
    "end "
    "end "
    "return 1",
    "1830abfe4daa7eab25d2496fb5a2d9bd6cc3db98"};

/// What stands under the resource and beside it. What our user may not read there is left out.
/// KEYS: the resource, its queue, the holder's note, its readers, its counter; the resource alone where the
/// others may not be asked for. The answer: a line with the type, the rest
/// of the time to live, how many wait, read, and were counted as holders (0: none), and the length of the
/// first of what follows: the owner, and the note.
inline constexpr Script query{
    "local function text(key,longest) "
    "local value=redis.pcall('get',key) "
    "return type(value)=='string' and string.sub(value,1,longest) or '' "
    "end "
    "local function number(value) return type(value)=='number' and value or 0 end "
    "local kind=redis.call('type',KEYS[1]).ok "
    "local owner=text(KEYS[1],512) "
    "local waiters,note,readers,count=0,'',0,0 "
    "if KEYS[2] then "
    "waiters=number(redis.pcall('zcard',KEYS[2])) "
    "note=text(KEYS[3],2048) "
    "local t=redis.pcall('time') "
    "local now=t[1] and string.format('%.0f',t[1]*1000+math.floor(t[2]/1000)) or '-inf' "
    "readers=number(redis.pcall('zcount',KEYS[4],now,'+inf')) "
    "count=tonumber(string.match(text(KEYS[5],128),':(%d+)$') or 0) "
    "end "
    "return string.format('%s %.0f %.0f %.0f %.0f %.0f\\n',kind,redis.call('pttl',KEYS[1]),waiters,readers,"
    "count,#owner)..owner..note",
    "eb467b86c691fd92b2c177c77aca36836752eea9"};

/// Whether anything stands there. KEYS: the resources. The answer: a digit for each.
inline constexpr Script which_exist{
    "local found='' "
    "for i=1,#KEYS do found=found..redis.call('exists',KEYS[i]) end "
    "return found",
    "a984b9db5c1706c9e887b11c240059ea2c00391e"};

/// All of them, so that each has a number.
inline constexpr std::array scripts{&compare_and_delete,
                                    &compare_and_expire,
                                    &delete_all,
                                    &expire_all,
                                    &set_all,
                                    &set_and_count,
                                    &raise_count,
                                    &delete_and_wake,
                                    &enter_queue,
                                    &leave_and_set,
                                    &leave_and_count,
                                    &share,
                                    &share_and_count,
                                    &stay,
                                    &leave,
                                    &raise_as_reader,
                                    &rest_all,
                                    &note_holder,
                                    &query,
                                    &which_exist};

constexpr std::size_t number_of(const Script* script) noexcept {
    std::size_t number = 0;
    while (scripts[number] != script) ++number;
    return number;
}

}  // namespace redlock::detail
