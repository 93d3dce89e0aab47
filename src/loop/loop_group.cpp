#include "loop_group.hpp"

#include <redlock/detail/memory.hpp>

#include "../round/write_choice.hpp"
#include "loop_waiter.hpp"
#include "round_places.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace redlock::loop {

static_assert(RoundPlaces::size <= detail::max_collected_commands);

// ---- FormerGroups

void FormerGroups::add(std::shared_ptr<LoopGroup> group) {
    const std::lock_guard guard{mutex_};
    drop_done_locked();
    groups_.push_back(std::move(group));
}

void FormerGroups::unused(LoopGroup& group) noexcept {
    const std::lock_guard guard{mutex_};
    group.is_unused_ = true;
    drop_done_locked();
}

void FormerGroups::drop_done_locked() noexcept {
    std::erase_if(groups_, [](const auto& group) { return group->is_unused_ && group->close_if_done(); });
}

void FormerGroups::close(Lanes& threads) noexcept {
    std::vector<std::shared_ptr<LoopGroup>> groups;
    {
        const std::lock_guard guard{mutex_};
        groups.swap(groups_);
    }
    std::vector<NodeGroup*> nodes;
    (void)detail::has_memory_for([&] {  // otherwise the destructors send the rest
        for (const auto& group : groups) nodes.push_back(&group->nodes());
    });
    threads.close(nodes);
}

// ---- LoopGroup

/// A round, or the rounds of a batch on a Redis Cluster, one after the other.
class LoopGroup::RoundOfTask final : public RoundInSteps, public RoundDriver::Maker {
public:
    RoundOfTask(LoopGroup& group, Task& task, std::span<const Request> requests, const RoundLimits& limits,
                std::span<Tally> tallies)
        : group_(group), task_(task), limits_(limits), parts_(group.group_.clusters(), requests, tallies) {
        ++group_.rounds_;
    }
    ~RoundOfTask() override {
        if (--group_.rounds_ == 0) group_.has_to_write_ = true;
        group_.wake();
    }

    std::optional<Clock::time_point> advance() override {
        while (round_ || parts_.next()) {
            if (!round_) round_.emplace(group_.group_, *this, parts_.requests(), limits_, parts_.tallies());
            // The wait has lasted until its end (RoundDriver::read_clock()).
            if (until_ && group_.now() >= *until_) {
                group_.read_all();
                round_->read_clock();
            }
            until_ = round_->advance();
            group_.wake();
            if (until_) return until_;
            round_->finish();
            round_.reset();
        }
        return std::nullopt;
    }

private:
    void wake() noexcept override { task_.wake(); }

    LoopGroup& group_;
    Task& task_;
    const RoundLimits& limits_;
    RequestsByServer parts_;  // mostly one
    std::optional<RoundDriver> round_{};
    std::optional<Clock::time_point> until_{};  // the end of the wait
};

std::unique_ptr<RoundInSteps> LoopGroup::begin(Task& task, std::span<const Request> requests,
                                               const RoundLimits& limits, std::span<Tally> tallies) {
    // Nobody has read from the connections since the last round. A server may have closed one.
    if (rounds_ == 0) read_all();
    for (const auto& it : requests) longest_ttl_ = std::max(longest_ttl_, it.command.ttl);
    return std::make_unique<RoundOfTask>(*this, task, requests, limits, tallies);
}

std::unique_ptr<WaiterInSteps> LoopGroup::waiter() {
    return std::make_unique<LoopWaiter>(listeners_, local_queues_, group_.listeners(), clock());
}

/// Without memory, proceed() tries again. An exception would end the loop of the program.
void LoopGroup::on_ready(int fd) {
    const int ready = network_.watches().on_ready(fd);
    for (auto& it : watched_) it.ready = it.ready || it.fd == ready;
    listeners_.on_ready(ready);
    wake();
    (void)detail::has_memory_for([this] { take_ready(); });
}

/// Continues with the watched connections that are ready.
void LoopGroup::take_ready() {
    if (std::ranges::none_of(watched_, &PollEntry::ready)) return;
    group_.take_ready(watched_, now());
    for (auto& it : watched_) it.ready = false;
}

/// Reads from all connections that have something to read, without waiting.
void LoopGroup::read_all() {
    watched_.clear();
    group_.append_poll_entries(watched_);
    const auto instant = now();
    network_.wait(watched_, instant, instant);
    take_ready();
}

/// Without memory, tries again soon. Otherwise nobody would watch a connection that has a release to write.
void LoopGroup::proceed() {
    auto until = Clock::never();
    const bool done = detail::has_memory_for([&] {
        for (auto& it : watched_)
            if (now() >= it.until) it.ready = true;
        take_ready();
        (void)group_.check_silence(now());
        if (rounds_ == 0 && has_to_write_) idle_since_ = now();
        if (rounds_ == 0 && now() >= idle_since_ + longest_ttl_)
            group_.give_up_unwritten(now());
        else
            until = group_.write_collected(now());
        if (rounds_ == 0) has_to_write_ = has_to_write_ && until != Clock::never();
        until = std::min(until, find_connections_to_watch());
        network_.watches().watch(watched_);
        for (const auto& it : watched_) until = std::min(until, it.until);
    });
    wake_at(done ? until : now() + std::chrono::milliseconds{10});
}

/// Collects the connections to watch: those of the listeners, and while a round is under way, all others.
/// Otherwise only those on which a release has no reply although its round is over. A loop must be able to
/// end, so these are watched until an instant, which the first row that applies decides:
///
///     the release            | until               | because
///     -----------------------+---------------------+-----------------------------------------------------
///     is not written (whole) | the longest ttl     | by then its keys have expired. If it is one of a thread
///                            | after idle_since_   | or of another loop, they send it then (KeptReleases).
///     is written             | node_timeout after  | by then proceed() has called check_silence(), and
///                            | idle_since_         | the next round reads what comes later
///
/// Returns the instant at which the first of these limits ends.
Clock::time_point LoopGroup::find_connections_to_watch() {
    watched_.clear();
    group_.append_poll_entries(watched_, rounds_ > 0 ? Node::Polled::all : Node::Polled::owing);
    auto next = Clock::never();
    if (rounds_ == 0)
        std::erase_if(watched_, [&, now = now()](const PollEntry& it) {
            const auto until =
                idle_since_ +
                (it.unsent ? longest_ttl_ : group_.node_timeout() + std::chrono::milliseconds{1});
            if (now >= until) return true;
            next = std::min(next, until);
            return false;
        });
    listeners_.append_poll_entries(watched_);
    return next;
}

/// Writes what the operations have left to write, and waits a millisecond for the sockets at most.
void LoopGroup::detach() noexcept {
    listeners_.drop_all();
    for (const auto& pool : group_.listeners()) pool->drop_all();
    network_.watches().detach();
    watched_.clear();
    SchedulerMember::scheduler->set_end_of_pass(nullptr);
    detached_at_ = clock().now();
    (void)detail::has_memory_for([this] {  // otherwise the destructor sends the rest
        (void)NodeGroup::send_the_rest(std::array{&group_}, clock().now() + std::chrono::milliseconds{1},
                                       true);
        if (const auto former = former_.lock()) former->add(shared_from_this());
    });
}

bool LoopGroup::close_if_done() noexcept {
    const auto now = clock().now();
    bool done = false;
    (void)detail::has_memory_for([&] {
        done = NodeGroup::send_the_rest(std::array{&group_}, now, false) ||
               now >= detached_at_ + group_.node_timeout();
    });
    if (done) group_.give_up();
    return done;
}

}  // namespace redlock::loop
