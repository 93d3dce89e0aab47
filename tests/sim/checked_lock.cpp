#include "checked_lock.hpp"

#include "looking.hpp"

#include <algorithm>
#include <utility>

namespace redlock::sim {

CheckedLock::CheckedLock(Client& client, std::vector<std::string> resources, LockOptions options)
    : client_(client),
      referee_(client.referee()),
      max_hold_(options.max_hold),
      options_(observed(std::move(options))),
      lock_(client.nodes(), std::move(resources), options_, client.clock(), client.entropy()) {
    referee_.watch(*this);
}

/// What the destructor of the real one does, but under the eyes of the referee.
CheckedLock::~CheckedLock() {
    if (client_.process().alive() && !lock_.owner().empty()) (void)release();
    referee_.forget(*this);
}

// ---- The verbs

Result CheckedLock::acquire(std::stop_token stop) {
    return acquire_by([&] { return lock_.acquire(std::move(stop)); });
}

Result CheckedLock::try_acquire() {
    return acquire_by([&] { return lock_.try_acquire(); });
}

Result CheckedLock::acquire_for(nanoseconds span) {
    return acquire_by([&] { return lock_.acquire_for(span); });
}

template <class Verb>
Result CheckedLock::acquire_by(Verb verb) {
    const std::string before{lock_.owner()};
    (void)client_.network().take_claims();
    acquiring_ = true;
    auto result = verb();
    acquiring_ = false;
    if (!client_.process().alive()) return result;
    client_.note([&] { return "acquires " + lock_.resource() + ": " + result.message(); });
    if (result.error() == Errc::already_held) return result;
    if (!before.empty() && before != lock_.owner()) let_go(before);
    for (const auto& claim : client_.network().take_claims())
        if (claim != lock_.owner()) let_go(claim);
    held_ = static_cast<bool>(result);
    lapsed_ = false;
    if (result) won(result);
    return result;
}

void CheckedLock::won(const Result& result) {
    const Process::Quiet quiet{client_.process()};
    const auto asked = client_.network().asked(lock_.owner());
    const auto latest = asked.began + options_.ttl - drift(options_.ttl, options_.drift_factor);
    referee_.expect(valid_until() <= latest, Rule::validity_is_bounded, client_.name());
    referee_.expect(result.validity() > 0ns && asked.ended < latest, Rule::confirmed_in_time, client_.name());
    owner_ = lock_.owner();
    since_ = client_.process().now();
    until_ = valid_until();
    longest_ttl_ = options_.ttl;
    extended_by_hand_ = watch_was_noticed_ = false;
    hold_ = referee_.acquired({.resources = resources(),
                               .token = lock_.fencing_token(),
                               .completed = seen_until(asked.ended),
                               .until = seen_until(latest)});
    referee_.look();
}

Result CheckedLock::extend(milliseconds ttl) {
    if (watched()) return extend_watched(ttl);
    const auto before = valid_until();
    const bool was_valid = before > Clock::time_point{};
    const std::string owner{lock_.owner()};
    extending_ = true;
    auto result = lock_.extend(ttl);
    extending_ = false;
    if (!client_.process().alive()) return result;
    client_.note([&] { return "extends " + lock_.resource() + ": " + result.message(); });
    const Process::Quiet quiet{client_.process()};
    const auto after = valid_until();
    expect_lost_for_good(result, after);
    if (!result) {
        referee_.expect(after <= before, Rule::validity_is_kept, client_.name() + " failed to extend");
        const bool still = client_.process().now() < before;
        const bool kept = result.error() != Errc::lost;
        if (was_valid && still && kept)
            referee_.expect(after == before, Rule::validity_is_kept, client_.name());
        return result;
    }
    referee_.extended();
    const auto asked = client_.network().asked(owner);
    const auto latest = asked.began + ttl - drift(ttl, options_.drift_factor);
    referee_.expect(was_valid && asked.ended < before, Rule::confirmed_in_time, client_.name());
    referee_.expect(after <= std::max(before, latest), Rule::validity_is_bounded, client_.name());
    if (after > Clock::time_point{}) {
        referee_.expect(after >= before, Rule::validity_is_kept, client_.name() + " shortened");
        referee_.lasts(hold_, seen_until(after));
    }
    referee_.look();
    return result;
}

/// Meanwhile the watchdog may have done the same, or told the loss.
Result CheckedLock::extend_watched(milliseconds ttl) {
    const auto before = valid_until();
    longest_ttl_ = std::max(longest_ttl_, ttl);
    extended_by_hand_ = true;
    auto result = lock_.extend(ttl);
    if (!client_.process().alive()) return result;
    client_.note([&] { return "extends " + lock_.resource() + " by hand: " + result.message(); });
    const auto after = valid_until();
    expect_lost_for_good(result, after);
    if (result && !was_told() && after > Clock::time_point{})
        referee_.expect(after >= before, Rule::validity_is_kept, client_.name() + " shortened");
    referee_.look();
    return result;
}

void CheckedLock::expect_lost_for_good(const Result& result, Clock::time_point valid_until) {
    if (result.error() == Errc::lost)
        referee_.expect(valid_until == Clock::time_point{}, Rule::loss_is_final, client_.name());
}

Result CheckedLock::release() {
    const std::string owner{lock_.owner()};
    const auto now = client_.process().timeline().now();
    if (held_ && valid_until() > Clock::time_point{}) referee_.lasts(hold_, now);
    held_ = false;
    auto result = lock_.release();
    if (!client_.process().alive()) return result;
    client_.note([&] { return "releases " + lock_.resource() + ": " + result.message(); });
    if (!owner.empty()) let_go(owner);
    return result;
}

void CheckedLock::let_go(std::string owner) {
    if (watched()) {
        over_ = owner;
        client_.network().is_over(owner);
    }
    if (const auto span = client_.settles_in(); span > 0ns)
        referee_.expect_gone_in(span, owner, resources(), client_.network().unreached(owner));
}

// ---- For the referee

/// The beginning of time if it is not valid.
Clock::time_point CheckedLock::valid_until() const {
    const Process::Quiet quiet{client_.process()};
    const auto left = lock_.remaining();
    return left > 0ns ? client_.process().now() + left : Clock::time_point{};
}

bool CheckedLock::looks_valid() {
    if (!held_ || !client_.process().alive()) return false;
    const Process::Quiet quiet{client_.process()};
    if (acquiring_ && lock_.owner() != owner_) return false;  // the next one, of which nobody has heard yet
    (void)Looking::was_behind_a_mutex();
    const bool valid = lock_.valid();
    const bool open = !Looking::was_behind_a_mutex();
    if (valid && lapsed_) referee_.violated(Rule::lapsed_stays_lapsed, client_.name());
    // Who extends alone and stands still meanwhile sees nothing of what the lock would say. Where a watchdog
    // extends, whichever thread stands still, another may look: unless it had to wait for the one that does.
    const bool seen = watched() ? open : !extending_ && !client_.process().paused();
    lapsed_ = lapsed_ || (!valid && seen);
    if (watched()) look_at_the_watch(valid, open);
    return valid;
}

void CheckedLock::look_at_the_watch(bool valid, bool open) {
    if (valid && was_told()) referee_.violated(Rule::loss_is_final, client_.name());
    if (!valid && open && !acquiring_ && !was_told() && notice_is_due())
        referee_.violated(Rule::loss_is_told, client_.name() + " of " + lock_.resource());
    if (!valid) return;
    if (const auto until = valid_until(); until != until_) look_at_an_extension(until);
}

/// A round of others that began before this lock came under watch has not heard of it, and may go on for the
/// budget of a node.
bool CheckedLock::notice_is_due() const {
    auto& process = client_.process();
    if (process.paused()) return false;
    const auto budget = watch_was_noticed_ ? nanoseconds{} : client_.nodes().node_timeout();
    const auto now = process.timeline().now();
    return process.now() > since_ + budget && !process.stood_still_since(now - budget - budget / 10);
}

void CheckedLock::look_at_an_extension(Clock::time_point until) {
    referee_.extended();
    referee_.expect(until >= until_, Rule::validity_is_kept, client_.name() + " shortened");
    until_ = until;
    watch_was_noticed_ = watch_was_noticed_ || !extended_by_hand_;
    const auto began = client_.network().asked(lock_.owner()).began;
    const auto latest = began + longest_ttl_ - drift(longest_ttl_, options_.drift_factor);
    referee_.expect(until <= latest, Rule::validity_is_bounded, client_.name());
    referee_.lasts(hold_, seen_until(until));
    const auto limit = deadline_after(since_, max_hold_);
    if (began > limit && !extended_by_hand_ && !client_.process().stood_still_since(seen_until(limit)))
        referee_.violated(Rule::hold_is_limited, client_.name());
}

// ---- What the watchdog says

LockOptions CheckedLock::observed(LockOptions options) {
    if (!options.watchdog) return options;
    options.on_lost = [this, theirs = std::move(options.on_lost)](const Result& loss) {
        told(loss);
        if (theirs) theirs(loss);
    };
    return options;
}

void CheckedLock::told(const Result& loss) {
    if (!client_.process().alive()) return;
    client_.note([&] { return "hears that " + lock_.resource() + " is lost: " + loss.message(); });
    const Process::Quiet quiet{client_.process()};
    const std::string owner{lock_.owner()};
    referee_.expect(owner != told_, Rule::one_notice, client_.name());
    referee_.expect(owner != over_ && !owner.empty(), Rule::over_with_release, client_.name());
    referee_.expect(!lock_.valid() && lock_.lost().stop_requested(), Rule::loss_is_final, client_.name());
    told_ = owner;
}

bool CheckedLock::overlaps(const CheckedLock& other) const {
    return std::ranges::any_of(lock_.resources(), [&](const auto& resource) {
        return std::ranges::binary_search(other.lock_.resources(), resource);
    });
}

}  // namespace redlock::sim
