// The Lua scripts that the nodes run, each as one step: nothing comes in between.
//
// Numbers of microseconds go through string.format('%.0f'): Lua itself would write 1.76e+15.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace redlock::detail {

/// A Lua script and the name under which a server that has seen it knows it.
struct Script {
    std::string_view text;
    std::string_view sha1;
};

/// What a script begins with that asks for a vote: a node that is not known to have had its data for the
/// whole quarantine (in microseconds, the last of ARGV; 0: none) gives none. Since when it has had them
/// stands in the marker, the last of KEYS, which goes when the data go; the first command makes it. A
/// clock that was set back counts against the node.
#define REDLOCK_UNLESS_YOUNG                                                                               \
    "local q=tonumber(ARGV[#ARGV]) "                                                                       \
    "if q>0 then "                                                                                         \
    "local marker,t=KEYS[#KEYS],redis.call('time') "                                                       \
    "local now=t[1]*1000000+t[2] "                                                                         \
    "local since=tonumber(redis.call('get',marker) or '') "                                                \
    "local keep=string.format('%.0f',math.max(2419200000,q/500)) "                                         \
    "if not since then since=now redis.call('set',marker,string.format('%.0f',now),'px',keep) end "        \
    "if since+q>now then return {ok=string.format('QUARANTINED for another %.0f ms',(since+q-now)/1000)} " \
    "end "                                                                                                 \
    "if redis.call('pttl',marker)<keep/2 then redis.call('pexpire',marker,keep) end "                      \
    "end "

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
inline constexpr Script expire_all{REDLOCK_UNLESS_YOUNG
                                   "local n=tonumber(ARGV[3]) "
                                   "for i=1,n do if redis.call('get',KEYS[i])~=ARGV[1] then return 0 end end "
                                   "for i=1,n do if redis.call('pttl',KEYS[i])<tonumber(ARGV[2]) then "
                                   "redis.call('pexpire',KEYS[i],ARGV[2]) end end "
                                   "return 1",
                                   "a3b56dcb15d2fae871f013c53408ff35df419821"};

/// SET NX PX of several resources, or with a quarantine.
/// KEYS: the resources, the marker. ARGV: owner, ttl, number of resources, quarantine.
inline constexpr Script set_all{REDLOCK_UNLESS_YOUNG
                                "local n=tonumber(ARGV[3]) "
                                "for i=1,n do if redis.call('exists',KEYS[i])==1 then return 0 end end "
                                "for i=1,n do redis.call('set',KEYS[i],ARGV[1],'px',ARGV[2]) end "
                                "return 1",
                                "ab8985fdada16e94ceb5cd77177e2fd541345087"};

/// The same with a count of the holders of each resource, named after the run of the server: a server that
/// was restarted begins another, seeded with its wall clock. All are set to the largest, which is the answer.
/// KEYS: the resources, their counters, the marker. ARGV: owner, ttl, number of resources, the counters'
/// expiry, quarantine.
inline constexpr Script set_and_count{
    REDLOCK_UNLESS_YOUNG
    "local n=tonumber(ARGV[3]) "
    "for i=1,n do if redis.call('exists',KEYS[i])==1 then return 0 end end "
    "local t=redis.call('time') "
    "local fence,seed=0,t[1]*1000000+t[2] "
    "for i=n+1,2*n do "
    "local held=redis.pcall('get',KEYS[i]) "
    "local count=held and tonumber(type(held)=='string' and held or '') "
    "if held and not (count and count>=0 and count<9e15) then return {err='WRONGTYPE '..KEYS[i]..' holds no "
    "count'} end "
    "fence=math.max(fence,count and count+1 or seed) "
    "end "
    "for i=n+1,2*n do redis.call('set',KEYS[i],string.format('%.0f',fence),'px',ARGV[4]) end "
    "for i=1,n do redis.call('set',KEYS[i],ARGV[1],'px',ARGV[2]) end "
    "return fence",
    "b13fb1ac66458d624bd690137f6b89399a4be1c1"};

/// Raises the counters, but makes none: a missing one is to be seeded by the next grant. Nor does it raise
/// them so far that a seed could be smaller once they have expired: the answer is then minus the count.
/// KEYS: the resources, their counters, the marker. ARGV: owner, fence, number of resources, the counters'
/// expiry, quarantine.
inline constexpr Script raise_count{
    REDLOCK_UNLESS_YOUNG
    "local n=tonumber(ARGV[3]) "
    "for i=1,n do if redis.call('get',KEYS[i])~=ARGV[1] then return 0 end end "
    "local count=0 "
    "for i=n+1,2*n do "
    "local held=redis.call('get',KEYS[i]) "
    "if not held then return 0 end "
    "count=math.max(count,tonumber(held)) "
    "end "
    "local t=redis.call('time') "
    "if tonumber(ARGV[2])>t[1]*1000000+t[2]+ARGV[4]*1000 then return -count end "
    "for i=n+1,2*n do if tonumber(redis.call('get',KEYS[i]))<tonumber(ARGV[2]) then "
    "redis.call('set',KEYS[i],ARGV[2],'px',ARGV[4]) end end "
    "return 1",
    "3ae934eb8ffd53e23ae9c0081857d442b62aafb6"};

#undef REDLOCK_UNLESS_YOUNG

/// All of them, so that each has a number.
inline constexpr std::array scripts{
    &compare_and_delete, &compare_and_expire, &delete_all, &expire_all, &set_all,
    &set_and_count,      &raise_count};

constexpr std::size_t number_of(const Script* script) noexcept {
    std::size_t number = 0;
    while (scripts[number] != script) ++number;
    return number;
}

}  // namespace redlock::detail
