// The rounds of many threads on connections that they share. A *round* sends one command to N Redis masters,
// the *nodes*, and counts their votes. Each thread that asks for a round blocks until it is over.
//
// One of these threads *leads*: it alone uses the connections, and makes the rounds of all threads. In each
// turn, the leader begins the new rounds, writes their commands together, waits for replies, and continues
// with the rounds that have got one. The other threads sleep. The life of a round:
//
//     state   | meaning                                  | transitions
//     --------+------------------------------------------+-------------------------------------------------
//     new     | in the inbox; the leader has not seen it | the leader begins it → active, or ended if
//             |                                          | it could not begin
//     active  | the leader makes it                      | its last step, or an exception → ended
//     ended   | the leader has no step left to make      | the leader wakes its thread → over
//     over    | the leader has woken its thread, which   |
//             | returns                                  |
//
// These are the rules, which tests/model/shared_reading.pml checks:
//
// 1. A thread puts its round into the inbox. If nobody leads, it becomes the leader in the same section under
//    the mutex. Otherwise it sleeps until its round is over, or until it is named as the leader.
// 2. The leader looks into the inbox before each wait. While it waits for replies, new rounds are collected.
//    The thread whose round is the first in the inbox wakes the leader if this takes longer than
//    max_collecting. A thread whose deadline is closer than that wakes the leader at once.
// 3. The leader writes when the rules of connection_choice.hpp permit it, and ends the rounds whose time is
//    over. Each round stores until when it waits (Asker::until).
// 4. When the round of the leader is over, it names another thread whose round is new or active as its
//    successor, and wakes it. If the round of the successor is new, the leader has read the inbox in the same
//    section under the mutex. So there is never a sleeping thread without a leader.
// 5. If there is no such thread, the leader writes all collected commands, even behind pending replies,
//    before it leaves. A background task, which leads for a moment if nobody does, sends what the sockets do
//    not accept.
//
// A round reads its stop token only when it is about to ask another node, so a stop need not wake anybody. A
// sleeping thread allocates no memory. An exception from the round of a thread is thrown in this thread.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/nodes.hpp>

#include "os/network.hpp"
#include "redis/node_group.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace redlock {

class SharedRounds {
public:
    /// Does no I/O. `network` must outlive the object.
    SharedRounds(const std::vector<NodeConfig>& configs, const NodesOptions& options, Network& network);
    ~SharedRounds();
    SharedRounds(const SharedRounds&) = delete;
    SharedRounds& operator=(const SharedRounds&) = delete;

    /// Makes one round, and blocks while it lasts. Requires that the requests fit_in_one_round().
    void ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies);

    /// Returns true if a command about the same lock may be unanswered here although its round is over. The
    /// command must then be sent here, because it could overtake the other one on another connection.
    bool may_precede(const Command& command) const noexcept;

    /// Returns the number of rounds that the leader has not begun.
    std::size_t new_rounds() const;

    /// Requires that no round is under way.
    NodeGroup& group() noexcept { return group_; }
    /// Ends the background task.
    void end_background_task() noexcept { sender_.reset(); }

private:
    class Asker;

    /// A list whose elements lie on the stacks of their threads.
    class Askers {
    public:
        bool empty() const noexcept { return !first_; }
        Asker* first() const noexcept { return first_; }
        Asker* last() const noexcept { return last_; }
        void add(Asker& asker) noexcept;
        void remove(Asker& asker) noexcept;
        /// Removes the first element, and returns it, or null.
        Asker* take() noexcept;

    private:
        Asker* first_ = nullptr;
        Asker* last_ = nullptr;
    };

    void wake_leader(const Asker& own);
    void lead(Asker& own) noexcept;
    void make_turn(Asker& own);
    void begin_new_rounds();
    void begin(Asker& asker) noexcept;
    void advance(Asker& asker) noexcept;
    bool advance_woken() noexcept;
    void advance_overdue(Clock::time_point now) noexcept;
    Clock::time_point write();
    void poll(Clock::time_point until, const std::optional<PollEntry>& wakeup);
    std::optional<PollEntry> wakeup_entry();
    void reset_wakeup();
    void read_all();
    void end(Asker& asker, std::exception_ptr failure) noexcept;
    void wake_ended(const Asker* own) noexcept;
    void give_up(Asker& own) noexcept;
    void hand_over() noexcept;
    void leave() noexcept;
    bool resign() noexcept;
    Clock::time_point send_unsent(Clock::time_point now);

    Network& network_;
    const Clock::duration node_timeout_;

    mutable std::mutex mutex_{};
    // Guarded by mutex_.
    bool is_led_ = false;
    std::unique_ptr<Wakeup> wakeup_{};  // made when it is first needed; null if there is no descriptor left
    bool woken_ = false;                // wakeup_ was used, and has not been reset
    Askers inbox_{};

    // Used by the leader only.
    NodeGroup group_;
    Askers active_{};
    Askers ended_{};  // their threads have not been woken yet
    std::vector<PollEntry> entries_{};
    bool has_tried_wakeup_ = false;
    Clock::time_point last_read_{};

    // What the rounds that are over have left behind on the connections. Written by the leader.
    std::atomic<bool> has_late_replies_{false};
    std::atomic<std::uint64_t> released_late_{0};  // PendingReply::released of these replies

    std::atomic<Clock::time_point> unsent_since_{};
    std::unique_ptr<BackgroundTask> sender_{};
};

}  // namespace redlock
