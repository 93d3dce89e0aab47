#include "failovers.hpp"

#include "resources.hpp"

#include <thread>
#include <utility>
#include <vector>

namespace redlock::torture {

using namespace std::chrono_literals;
using support::SentinelGroup;

Failovers::Failovers(support::SentinelGroup& group, HoldLog& log, std::uint64_t seed)
    : group_(group),
      log_(log),
      random_(seed + 1),
      thread_(std::async(std::launch::async, [this] { run(); })) {}

void Failovers::stop() {
    stopped_ = true;
    thread_.get();
}

void Failovers::run() {
    auto* master = &group_.servers[0];
    auto* replica = &group_.servers[1];
    await_holds(*master);
    while (!stopped_) {
        const bool second = completed_ == 1;  // so that each run has both kinds
        if (completed_ == 0 || (!second && random_() % 2 == 0))
            order(*master, *replica);
        else
            freeze(*master, *replica);
        std::swap(master, replica);
        await_holds(*master);
        pause(3s);
        ++completed_;
    }
}

/// The former master continues without its replica for three seconds, as if it were cut off together with
/// some clients. The quarantine allows for a longer time.
void Failovers::order(const Server& former, const Server& next) {
    ++counts_["failovers ordered"];
    const auto end = now() + 3'000'000'000;
    SentinelGroup::allow_writes_alone(former, true);
    group_.begin_failover();
    while (now() < end && !group_.named(next)) std::this_thread::sleep_for(20ms);
    if (group_.named(next)) group_.take_over(next);
    while (now() < end) std::this_thread::sleep_for(20ms);
    SentinelGroup::allow_writes_alone(former, false);
    group_.fail_over_to(next);
    group_.take_over(next);
    SentinelGroup::follow(former, next);
}

/// For a second after it is thawed, the former master has not noticed either that it has no replica.
void Failovers::freeze(Server& former, const Server& next) {
    ++counts_["failovers of a frozen master"];
    SentinelGroup::allow_writes_alone(former, true);
    former.freeze();
    lose_last_writes(next);
    if (random_() % 2 == 0) group_.fail_over_to(next);  // sooner than the Sentinels would do it
    group_.await_promotion_of(next);
    group_.take_over(next);
    pause(14s);
    former.thaw();
    std::this_thread::sleep_for(1s);
    SentinelGroup::allow_writes_alone(former, false);
    SentinelGroup::follow(former, next);
}

/// Deletes the last writes on the replica, as if they had not been replicated.
void Failovers::lose_last_writes(const Server& replica) {
    std::vector<std::string> words{"DEL"};
    for (unsigned resource = 0; resource < resource_count; ++resource)
        for (const auto& key : keys_of(resource)) words.push_back(key);
    (void)replica.command({"CONFIG", "SET", "replica-read-only", "no"});
    (void)replica.command(words);
    (void)replica.command({"CONFIG", "SET", "replica-read-only", "yes"});
}

/// Waits until the node has granted something, because replicated keys have expired by then, and until a
/// worker holds a lock.
void Failovers::await_holds(const Server& master) {
    std::this_thread::sleep_for(1s);
    std::vector<std::string> words{"EXISTS"};
    for (unsigned resource = 0; resource < resource_count; ++resource) words.push_back(name_of(resource));
    const bool votes = comes([&] { return master.command(words) != "0"; });
    const auto before = log_.count();
    const bool holds = votes && comes([&] { return log_.count() > before; });
    if (!holds && !stopped_) ++without_holds_;
}

/// Returns false if it was stopped before, or after a minute.
template <class Condition>
bool Failovers::comes(Condition condition) const {
    for (const auto end = now() + 60'000'000'000; !condition(); std::this_thread::sleep_for(20ms))
        if (stopped_ || now() > end) return false;
    return true;
}

void Failovers::pause(std::chrono::milliseconds at_most) {
    const auto span = random_() % static_cast<std::uint64_t>(std::chrono::nanoseconds{at_most}.count());
    const auto end = now() + static_cast<Instant>(span);
    while (!stopped_ && now() < end) std::this_thread::sleep_for(20ms);
}

}  // namespace redlock::torture
