#include "checked_lock.hpp"

#include "mutex_bypass.hpp"

#include <algorithm>
#include <utility>

namespace redlock::sim {

CheckedLock::CheckedLock(Client& client, std::vector<std::string> resources, LockOptions options)
    : client_(client),
      loop_(client.loop()),
      checker_(client.checker()),
      max_hold_(options.max_hold),
      options_(observed(std::move(options))),
      lock_(client, std::move(resources), options_) {
    checker_.add(*this);
}

/// Releases as the destructor of the real lock does, with the checks of release().
CheckedLock::~CheckedLock() {
    if (client_.process().alive() && !lock_.owner().empty()) unlock();
    checker_.remove(*this);
}

// ---- The verbs

Result CheckedLock::acquire(std::stop_token stop) {
    return acquire_by([&] { return lock_.acquire(std::move(stop)); },
                      longest_attempts(options_.retry.attempts), queues(options_.retry.attempts));
}

Result CheckedLock::try_acquire() {
    return acquire_by([&] { return lock_.try_acquire(); }, longest_attempts(1), queues(1));
}

Result CheckedLock::acquire_for(nanoseconds span) {
    // The last attempt and its release may each have to wait for the leading thread.
    const auto& nodes = client_.network();
    return acquire_by([&] { return lock_.acquire_for(span); },
                      span + nodes.to_be_collected() + nodes.longest_round(), queues(2));
}

bool CheckedLock::queues(int attempts) const noexcept {
    return options_.fair && attempts > 1 && lock_.resources().size() == 1;
}

/// Calls `verb`, and checks that it blocks no longer than documented.
template <class Verb>
auto CheckedLock::in_time(nanoseconds longest, Verb verb) {
    const Stopwatch stopwatch{client_.process()};
    auto result = verb();
    // When the operation has ended, the same turn of its loop may shut the loop down, which blocks for up to
    // a millisecond.
    if (!stopwatch.within(longest + (client_.uses_loops() ? 1ms : 0ms)))
        checker_.violated(Rule::ends_in_time, client_.name() + " in a verb for " +
                                                  std::to_string(stopwatch.elapsed() / 1ms) +
                                                  " ms, and not for " + std::to_string(longest / 1ms));
    return result;
}

/// Returns how long the given number of attempts may block. With fencing, confirming the counts may take
/// another round. A lock that has waited in the queue may be refused just when that time is over. Then it
/// makes as many attempts as a lock that does not queue.
nanoseconds CheckedLock::longest_attempts(int attempts) const {
    const nanoseconds node_timeout = client_.network().longest_round();
    const auto rounds = static_cast<int>(client_.nodes().size()) + (options_.fencing ? 1 : 0);
    const auto attempt = rounds * node_timeout + node_timeout;
    const auto queued = (attempts - 1) * nanoseconds{options_.retry.delay} + attempt;
    return attempts * (attempt + options_.retry.delay) + (queues(attempts) ? queued : 0ns);
}

/// Returns how long release() may block. It may first have to wait for a round of the watchdog.
nanoseconds CheckedLock::longest_release() const {
    return client_.network().longest_round() * (watched() ? 2 : 1);
}

template <class Verb>
Result CheckedLock::acquire_by(Verb verb, nanoseconds longest, bool queues) {
    note_shutdown();
    const std::string before{lock_.owner()};
    const auto record = client_.network().record_owners(lock_.resources());
    acquiring_ = true;
    if (!before.empty()) longest += longest_release();  // to release the lapsed acquisition
    if (queues) checker_.waits(*this);
    auto result = in_time(longest, verb);
    checker_.waits_no_longer(*this, static_cast<bool>(result));
    acquiring_ = false;
    if (!client_.process().alive()) return result;
    client_.note([&] { return "acquires " + lock_.resource() + ": " + result.message(); });
    if (result.error() == Errc::already_held) return result;
    if (!before.empty() && before != lock_.owner()) ended(before);
    for (const auto& owner : client_.network().take_owners(record))
        if (owner != lock_.owner()) ended(owner);
    held_ = static_cast<bool>(result);
    lapsed_ = false;
    if (result) acquired(result);
    return result;
}

void CheckedLock::acquired(const Result& result) {
    const Process::NoFaults no_faults{client_.process()};
    const auto asked = client_.network().acquisition(lock_.owner());
    const auto validity = options_.ttl - drift(options_.ttl, options_.drift_factor);
    const auto end = asked.began + validity;
    const auto latest = client_.network().last_asked(lock_.owner()).began + validity;
    checker_.expect(valid_until() <= latest, Rule::validity_is_bounded, client_.name());
    checker_.expect(result.validity() > 0ns && asked.ended < end, Rule::confirmed_in_time, client_.name());
    owner_ = lock_.owner();
    since_ = client_.process().now();
    until_ = valid_until();
    longest_ttl_ = options_.ttl;
    extended_by_hand_ = extended_by_watchdog_ = false;
    hold_ = checker_.acquired({.resources = resources(),
                               .shared = options_.shared,
                               .token = lock_.fencing_token(),
                               .completed = seen_until(asked.ended),
                               .until = seen_until(latest),
                               .kept_until = seen_until(end - options_.ttl + options_.min_hold)});
    checker_.check();
}

Result CheckedLock::extend(milliseconds ttl) {
    if (watched()) return extend_watched(ttl);
    const auto before = valid_until();
    const bool was_valid = before > Clock::time_point{};
    const std::string owner{lock_.owner()};
    const auto shutdowns_before = shutdowns();
    extending_ = true;
    auto result = in_time(client_.network().longest_round(), [&] { return lock_.extend(ttl); });
    extending_ = false;
    if (!client_.process().alive()) return result;
    client_.note([&] { return "extends " + lock_.resource() + ": " + result.message(); });
    if (was_destroyed(result, owner, shutdowns_before)) return result;
    const Process::NoFaults no_faults{client_.process()};
    const auto after = valid_until();
    expect_lost_for_good(result, after);
    if (!result) {
        checker_.expect(after <= before, Rule::validity_is_kept, client_.name() + " failed to extend");
        const bool still = client_.process().now() < before;
        const bool kept = result.error() != Errc::lost;
        if (was_valid && still && kept)
            checker_.expect(after == before, Rule::validity_is_kept, client_.name());
        return result;
    }
    checker_.extended();
    const auto asked = client_.network().last_asked(owner);
    const auto latest = asked.began + ttl - drift(ttl, options_.drift_factor);
    checker_.expect(was_valid && asked.ended < before, Rule::confirmed_in_time, client_.name());
    checker_.expect(after <= std::max(before, latest), Rule::validity_is_bounded, client_.name());
    if (after > Clock::time_point{}) {
        checker_.expect(after >= before, Rule::validity_is_kept, client_.name() + " shortened");
        checker_.lasts(hold_, seen_until(after));
    }
    checker_.check();
    return result;
}

/// Returns true if an event loop has destroyed the lock during the extension, and so released it. A loop that
/// is shut down also destroys the lock of an extension that has not begun or has just ended.
bool CheckedLock::was_destroyed(const Result& extension, const std::string& owner,
                                std::size_t shutdowns_before) {
    if (extension.error() != Errc::cancelled && shutdowns() == shutdowns_before) return false;
    held_ = false;
    ended(owner);
    return true;
}

/// The watchdog may have extended the lock during the call, or reported its loss.
Result CheckedLock::extend_watched(milliseconds ttl) {
    const auto before = valid_until();
    const std::string owner{lock_.owner()};
    longest_ttl_ = std::max(longest_ttl_, ttl);
    extended_by_hand_ = true;
    const auto shutdowns_before = shutdowns();
    auto result = in_time(client_.network().longest_round(), [&] { return lock_.extend(ttl); });
    if (!client_.process().alive()) return result;
    client_.note([&] { return "extends " + lock_.resource() + " by hand: " + result.message(); });
    if (was_destroyed(result, owner, shutdowns_before)) return result;
    const auto after = valid_until();
    expect_lost_for_good(result, after);
    if (result && !was_notified() && after > Clock::time_point{})
        checker_.expect(after >= before, Rule::validity_is_kept, client_.name() + " shortened");
    checker_.check();
    return result;
}

void CheckedLock::expect_lost_for_good(const Result& result, Clock::time_point valid_until) {
    if (result.error() == Errc::lost)
        checker_.expect(valid_until == Clock::time_point{}, Rule::loss_is_final, client_.name());
}

Result CheckedLock::release() {
    const auto holds = checker_.holds();
    Result result{Errc::not_held};
    give_back([&] {
        result = lock_.release();
        return result.message();
    });
    const bool alive = client_.process().alive();
    if (alive && result && options_.fair) checker_.released(*this, holds);
    return result;
}

void CheckedLock::unlock() {
    give_back([&] {
        lock_.unlock();
        return "nobody asks";
    });
}

template <class Verb>
void CheckedLock::give_back(Verb verb) {
    note_shutdown();
    const std::string owner{lock_.owner()};
    const auto now = client_.process().timeline().now();
    if (held_ && valid_until() > Clock::time_point{}) checker_.lasts(hold_, now);
    held_ = false;
    releasing_ = true;
    const std::string outcome = in_time(longest_release(), verb);
    releasing_ = false;
    if (!client_.process().alive()) return;
    client_.note([&] { return "releases " + lock_.resource() + ": " + outcome; });
    if (!owner.empty()) ended(owner);
}

/// A loop that was shut down has destroyed the lock, and so released it.
void CheckedLock::note_shutdown() {
    if (held_ && loop_ && lock_.owner().empty()) {
        held_ = false;
        ended(owner_);
    }
}

void CheckedLock::ended(std::string owner) {
    if (watched()) {
        over_ = owner;
        // On a connection that is shared, an extension may still have to be written. It does no harm, because
        // it changes only the key of its owner.
        if (!client_.network().shares_connections()) client_.network().released(owner);
    }
    checker_.expect_gone_at_the_end(client_.process(), owner, resources());
    const auto span = client_.settling_time();
    if (span == 0ns) return;
    // A release may still wait for a connection. A loop that is shut down before does not send it.
    const auto unreached = [&client = client_, loop = loop_, owner, shutdowns_before = shutdowns(),
                            now = client_.network().unreached(owner)] {
        const bool was_shut_down = loop && loop->shutdowns() != shutdowns_before;
        return was_shut_down ? client.network().unreached(owner) : now;
    };
    checker_.expect_gone_in(span + options_.min_hold, owner, resources(), unreached,
                            loop_ ? &client_.process() : nullptr);
}

// ---- For the checker

/// Returns the smallest time point if the lock is not valid.
Clock::time_point CheckedLock::valid_until() const {
    const Process::NoFaults no_faults{client_.process()};
    const auto left = lock_.remaining();
    return left > 0ns ? client_.process().now() + left : Clock::time_point{};
}

bool CheckedLock::check_valid() {
    if (!client_.process().alive()) return false;
    const Process::NoFaults no_faults{client_.process()};
    if (releasing_ && client_.network().releasing(lock_.owner()) && lock_.valid())
        checker_.violated(Rule::over_with_release, client_.name() + " is valid");
    if (!held_ || lock_.owner().empty()) return false;
    if (acquiring_ && lock_.owner() != owner_) return false;  // of the next acquisition, still under way
    (void)MutexBypass::found_mutex_held();
    const bool valid = lock_.valid();
    const bool open = !MutexBypass::found_mutex_held();
    if (valid && lapsed_) checker_.violated(Rule::lapsed_stays_lapsed, client_.name());
    // If a thread extends a lock without a watchdog and is paused meanwhile, no thread observes the lock. If
    // a watchdog extends it, another thread may observe the lock, unless that thread would have to wait for a
    // mutex of the paused one.
    const bool seen = watched() ? open : !extending_ && !client_.process().paused();
    lapsed_ = lapsed_ || (!valid && seen);
    if (watched()) check_watch(valid, open);
    return valid;
}

void CheckedLock::check_watch(bool valid, bool open) {
    if (valid && was_notified()) checker_.violated(Rule::loss_is_final, client_.name());
    if (!valid && open && !acquiring_ && !was_notified() && notice_is_due())
        checker_.violated(Rule::loss_is_reported, client_.name() + " of " + lock_.resource());
    if (!valid) return;
    if (const auto until = valid_until(); until != until_) check_extension(until);
}

/// Returns true if the watchdog must have reported a loss by now. A round that began before this lock came
/// under watch does not include it, and may delay the report by one node_timeout. So may a suspended thread
/// that leads the rounds of others. If a loop is suspended just before it sets its timer, the timer begins
/// late, and is up to one ttl long.
bool CheckedLock::notice_is_due() const {
    auto& process = client_.process();
    if (process.paused()) return false;
    const bool is_included = extended_by_watchdog_ && !client_.network().threads_share();
    const auto node_timeout = is_included ? nanoseconds{} : client_.network().longest_round();
    const auto longest_timer = loop_ ? nanoseconds{longest_ttl_} : nanoseconds{};
    const auto after_pause = std::max(longest_timer, node_timeout + node_timeout / 10);
    return process.now() > since_ + node_timeout &&
           !process.was_paused_since(process.timeline().now() - after_pause);
}

void CheckedLock::check_extension(Clock::time_point until) {
    checker_.extended();
    checker_.expect(until >= until_, Rule::validity_is_kept, client_.name() + " shortened");
    until_ = until;
    extended_by_watchdog_ = extended_by_watchdog_ || !extended_by_hand_;
    const auto began = client_.network().last_asked(lock_.owner()).began;
    const auto latest = began + longest_ttl_ - drift(longest_ttl_, options_.drift_factor);
    checker_.expect(until <= latest, Rule::validity_is_bounded, client_.name());
    checker_.lasts(hold_, seen_until(until));
    const auto limit = deadline_after(since_, max_hold_);
    if (began > limit && !extended_by_hand_ && !client_.process().was_paused_since(seen_until(limit)))
        checker_.violated(Rule::hold_is_limited, client_.name());
}

// ---- Notices of the watchdog

LockOptions CheckedLock::observed(LockOptions options) {
    if (!options.watchdog) return options;
    options.on_lost = [this, theirs = std::move(options.on_lost)](const Result& loss) {
        notified(loss);
        if (theirs) theirs(loss);
    };
    return options;
}

void CheckedLock::notified(const Result& loss) {
    if (!client_.process().alive()) return;
    client_.note([&] { return "is notified that " + lock_.resource() + " is lost: " + loss.message(); });
    const Process::NoFaults no_faults{client_.process()};
    const std::string owner{lock_.owner()};
    checker_.expect(owner != notified_, Rule::one_notice, client_.name());
    checker_.expect(owner != over_ && !owner.empty(), Rule::over_with_release, client_.name());
    checker_.expect(!lock_.valid() && lock_.lost().stop_requested(), Rule::loss_is_final, client_.name());
    notified_ = owner;
}

bool CheckedLock::overlaps(const CheckedLock& other) const {
    if (options_.shared && other.options_.shared) return false;
    return std::ranges::any_of(lock_.resources(), [&](const auto& resource) {
        return std::ranges::binary_search(other.lock_.resources(), resource);
    });
}

}  // namespace redlock::sim
