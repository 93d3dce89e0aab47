// Executes the steps of a QuorumRound over real connections: sends the command of the round to the nodes,
// takes their answers, and reports each event to the round. If the node is a Redis Cluster, NodeGroup chooses
// the Node of one of its servers, and the round goes to another one if a server says so (MOVED or ASK). When
// an answer comes, the Link calls on_progress(), which wakes the Maker if the round can continue. The Maker
// calls advance().
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>

#include "../round/quorum_round.hpp"
#include "../wire/command_encoding.hpp"
#include "node.hpp"
#include "node_group.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>

namespace redlock {

class RoundDriver final : private ConnectionUser, detail::NotCopied {
public:
    /// The thread or the task that makes the round.
    class Maker {
    public:
        /// Is called when advance() can go on. Must not call it.
        virtual void wake() noexcept = 0;

    protected:
        ~Maker() = default;
    };

    /// Begins a round. Requires that the requests can share a round (RequestsByServer in redis_cluster.hpp).
    /// The group, the maker and the arguments must outlive the round.
    RoundDriver(NodeGroup& group, Maker& maker, std::span<const Request> requests, const RoundLimits& limits,
                std::span<Tally> tallies);
    /// Leaves all connections. If the round is not over, it ends here, and the tallies say what is known.
    ~RoundDriver() { end(); }

    /// Executes the round as far as it goes without waiting. Returns the instant at which the wait ends at
    /// the latest, or nothing if the round is over.
    std::optional<Clock::time_point> advance();

    /// Must be called once the round is over. Notifies the observer.
    void finish();

    /// Reads the clock. The caller must read from the connections and call this function before it calls
    /// advance() because the instant has passed. Otherwise a reply that has come in time would not count.
    void read_clock() { now_ = clock().now(); }

    /// Replaces the wait by one system call if the round waits for one reply only. Returns false, without
    /// blocking, if the round waits for anything else, or if the call could last longer than `until`.
    bool try_blocking_receive(Clock::time_point until);

    /// Returns the instant at which the driver has read the clock last.
    Clock::time_point now() const noexcept { return now_; }

private:
    /// What the round uses of one node.
    struct Contact {
        Node* node = nullptr;
        Link* connection = nullptr;     // null if the round has none
        std::int64_t first_number = 0;  // of the pending replies to the last send()
        bool awaits_reply = false;      // replies to this round can be pending on the connection
        bool asking = false;            // the command is sent behind ASKING
        std::size_t server = 0;         // a hash of the run id; 0 if it is not known
    };

    using Step = detail::QuorumRound::Step;

    void end() noexcept;
    void begin(std::size_t node);
    bool join(std::size_t node);
    void give_up(const Step& step);
    void proceed(std::size_t node);
    bool on_progress(std::size_t node, Clock::time_point now) noexcept override;
    void send(std::size_t node);
    bool fail_if_duplicate(std::size_t node);
    void take_answers(std::size_t node);
    bool take_answer(std::size_t node, const detail::PendingReply& answer);
    bool follow_servers(std::size_t node);
    bool follow_redirection(std::size_t node, const detail::PendingReply& answer);
    void move_to(std::size_t node, NodeGroup::Route route, detail::PendingReplies releases);
    void fail(std::size_t node, std::error_code cause, const std::string& detail, bool maybe_executed = true);
    void report_left_alone(std::size_t node);
    void stop_awaiting(std::size_t node) noexcept;
    void leave(std::size_t node, bool timed_out = false) noexcept;

    std::size_t size() const noexcept { return contacts_.size(); }
    Clock& clock() const noexcept { return group_.network().clock(); }
    const Command& command() const noexcept { return round_.requests().front().command; }

    NodeGroup& group_;
    Maker& maker_;
    const std::span<Tally> tallies_;
    detail::QuorumRound round_;
    const Clock::time_point start_;
    bool has_ended_ = false;              // end() was called
    bool out_of_memory_ = false;          // on_progress() had no memory; advance() then throws
    Clock::time_point now_;               // updated after each step that takes time
    detail::CommandForEachNode command_;  // of a round with one request: its bytes, encoded once
    detail::SmallVector<Contact, detail::usual_nodes> contacts_;
};

}  // namespace redlock
