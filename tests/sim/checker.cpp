#include "checker.hpp"

#include "at_work.hpp"
#include "checked_lock.hpp"
#include "process.hpp"

#include <array>

namespace redlock::sim {

std::string_view name_of(Rule rule) noexcept {
    constexpr std::array<std::string_view, 23> names{
        "two holders",
        "a token that does not grow",
        "a validity that is too long",
        "a validity that moved",
        "a lapsed lock that came back",
        "a confirmation that came too late",
        "a key that was left",
        "a deadlock",
        "a loss that was not reported",
        "a loss that was reported twice",
        "a loss reported of a lock that is valid",
        "a lock that outlived its release",
        "a hold without a limit",
        "a command that overtakes its SET",
        "a wait that was too long",
        "a waiter that was not woken",
        "a waiter that was passed by",
        "more holders than slots",
        "a resource that was not kept",
        "a leader's stop told after the end",
        "two leaders",
        "a completion out of turn",
        "a leader without a majority",
    };
    return names[static_cast<std::size_t>(rule)];
}

void Checker::violated(Rule rule, const std::string& text) {
    if (saw(rule)) return;
    violations_.push_back({rule, timeline_.now(), text});
    log_.note("VIOLATION", [&] { return std::string{name_of(rule)} + ": " + text; });
}

bool Checker::saw(Rule rule) const noexcept {
    return std::ranges::any_of(violations_, [&](const auto& it) { return it.rule == rule; });
}

void Checker::check_semaphores() {
    const auto holders = static_cast<std::size_t>(
        std::ranges::count_if(semaphores_, [](Holder* it) { return it->check_valid(); }));
    if (holders > limit_) violated(Rule::at_most_l_holders, std::to_string(holders));
}

void Checker::check() {
    check_semaphores();
    check_leaders();
    std::array<CheckedLock*, 64> valid;
    std::size_t count = 0;
    for (auto* const lock : locks_)
        if (lock->check_valid() && count < valid.size()) valid[count++] = lock;
    for (std::size_t one = 0; one < count; ++one)
        for (std::size_t other = one + 1; other < count; ++other)
            if (valid[one]->overlaps(*valid[other]))
                violated(Rule::one_holder,
                         valid[one]->name() + " as " + log_.nickname(valid[one]->lock().owner()) + " and " +
                             valid[other]->name() + " as " + log_.nickname(valid[other]->lock().owner()) +
                             " of " + valid[one]->resources().front());
}

// ---- Tokens

std::size_t Checker::acquired(Hold hold) {
    if (hold.token > 0)
        for (const auto& other : holds_) {
            compare(other, hold);
            compare(hold, other);  // an acquisition may be confirmed after its own end
        }
    for (const auto& other : holds_) {
        compare_rest(other, hold);
        compare_rest(hold, other);
    }
    holds_.push_back(std::move(hold));
    return holds_.size() - 1;
}

bool Checker::overlap(const Hold& one, const Hold& other) {
    return std::ranges::any_of(one.resources, [&](const auto& resource) {
        return std::ranges::binary_search(other.resources, resource);
    });
}

void Checker::compare_rest(const Hold& earlier, const Hold& later) {
    const bool within = earlier.completed < later.completed && later.completed < earlier.kept_until;
    if (within && overlap(earlier, later)) violated(Rule::kept_at_least, earlier.resources.front());
}

/// Returns false if the wall clocks of the nodes have drifted apart by the quarantine. Then a node that has
/// lost its data can begin to count with a time that is too early.
bool Checker::clocks_agree() const {
    const auto [first, last] = std::ranges::minmax_element(nodes_, {}, &SimNode::wall);
    return quarantine_ == 0ms || (*last)->wall() - (*first)->wall() < quarantine_;
}

/// The tokens of two readers have no order.
void Checker::compare(const Hold& earlier, const Hold& later) {
    if (earlier.shared && later.shared) return;
    if (earlier.token == 0 || earlier.until > later.completed || earlier.token < later.token) return;
    if (overlap(earlier, later) && clocks_agree())
        violated(Rule::tokens_grow, std::to_string(earlier.token) + ", then " + std::to_string(later.token));
}

// ---- The queue

void Checker::waits(const CheckedLock& lock) {
    if (queue_bounds_.woken_in > 0ns) waiting_.push_back({&lock, timeline_.now()});
}

void Checker::waits_no_longer(const CheckedLock& lock, bool served) {
    const auto its = std::ranges::find(waiting_, &lock, &Waiting::lock);
    if (its == waiting_.end()) return;
    const auto since = its->since;
    waiting_.erase(its);
    if (!served) return;
    for (auto& it : waiting_)
        if (it.since + queue_bounds_.entered_in < since && it.lock->overlaps(lock) &&
            ++it.passed_by > queue_bounds_.by_passes)
            violated(Rule::served_in_order, it.lock->name());
}

/// Checks after the bound that no waiter was forgotten: if a lock was in the queue at the release and still
/// waits, another lock must have been acquired meanwhile.
void Checker::released(const CheckedLock& lock, std::size_t holds) {
    if (queue_bounds_.woken_in == 0ns) return;
    const auto now = timeline_.now();
    timeline_.after(queue_bounds_.woken_in, [this, now, resources = lock.resources(), holds] {
        const bool held = std::any_of(
            holds_.begin() + static_cast<std::ptrdiff_t>(holds), holds_.end(), [&](const Hold& it) {
                return std::ranges::find_first_of(it.resources, resources) != it.resources.end();
            });
        if (!held && waits_since_before(now - queue_bounds_.entered_in, resources))
            violated(Rule::woken_in_time, resources.front());
    });
}

bool Checker::waits_since_before(Instant when, const std::vector<std::string>& resources) const {
    return std::ranges::any_of(
        waiting_, [&](const Waiting& it) { return it.since < when && it.lock->resources() == resources; });
}

// ---- Leaders

std::string Checker::owner_of(const std::string& resource) const {
    for (const auto& node : nodes_) {
        auto owner = node->holder_of(resource);
        const auto has = [&](const auto& other) { return other->holder_of(resource) == owner; };
        const auto count = static_cast<std::size_t>(std::ranges::count_if(nodes_, has));
        if (!owner.empty() && count > nodes_.size() / 2) return owner;
    }
    return {};
}

/// Checks that no other leader works. The process of the other leader may have been suspended when it had to
/// stop, or since. Then its work may still be running, which is no violation.
void Checker::work_begins(Leading& leader) {
    for (const auto& [other, due] : works_) {
        const auto& process = other->process();
        if (process.alive() && !process.was_paused_since(std::min(due, timeline_.now())))
            violated(Rule::one_leader, process.name() + " and " + leader.process().name());
    }
    works_.push_back({&leader});
}

void Checker::work_is_told(const Leading& leader, Instant due) {
    for (auto& work : works_)
        if (work.leader == &leader) work.due = due;
}

void Checker::work_ends(const Leading& leader) {
    std::erase_if(works_, [&](const Work& it) { return it.leader == &leader; });
}

void Checker::check_leaders() {
    for (const auto& [leader, due] : works_)
        if (leader->check_valid() && (leader->owner().empty() || owner_of(leadership) != leader->owner()))
            violated(Rule::leads_by_majority, leader->process().name());
}

// ---- Keys

void Checker::expect_gone_in(nanoseconds span, std::string owner, std::vector<std::string> resources,
                             std::function<NodeSet()> unreached, const Process* sender) {
    timeline_.after(span, [this, owner = std::move(owner), resources = std::move(resources),
                           unreached = std::move(unreached), sender, since = timeline_.now()] {
        if (!sender || (sender->alive() && !sender->was_paused_since(since)))
            check_gone(owner, resources, unreached());
    });
}

void Checker::check_gone(const std::string& owner, const std::vector<std::string>& resources,
                         NodeSet unreached) {
    for (std::size_t node = 0; node < nodes_.size(); ++node)
        for (const auto& resource : resources)
            if (!unreached[node] && nodes_[node]->knows(owner, resource))
                violated(Rule::nothing_is_left, "of " + log_.nickname(owner) + " on " + nodes_[node]->name());
}

void Checker::check_over() {
    for (const auto& [process, owner, resources] : over_)
        if (process->alive()) check_gone(owner, resources, {});
}

void Checker::check_deadlocks() {
    for (const auto& node : nodes_)
        if (node->holds_longer_than(0ns)) violated(Rule::no_deadlock, node->name() + " holds on to a key");
}

}  // namespace redlock::sim
