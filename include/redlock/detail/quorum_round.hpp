// Decides the course of one round: which node is asked when, how long the round waits for it, and when the
// round ends. The class has no sockets, no clock and no mutex.
//
// A *round* sends a command, such as a SET, to N independent Redis masters, the *nodes*. Each node grants the
// command or refuses it, or its *vote* stays unknown. A lock needs the grants of a majority of the N nodes.
// The round is *decided* as soon as the missing votes cannot change its outcome.
//
// A command and the nodes that it goes to are a *request*. Usually a round has one request. If a watchdog
// extends several locks in one round, each extension is a request.
//
// How the round treats a node depends on the health of the node (node_health.hpp):
//
//     trusted    The node has not failed since its last answer, so it should answer in time.
//     untrusted  The node has failed. First it is in *back-off*, a pause in which most rounds send nothing to
//                it. After the pause, its *probe* is due: one round may try to reach the node again.
//
// The *driver* (RoundDriver in src/redis/round_driver.hpp) does the I/O. It executes the steps that next()
// returns, and calls a function on_...() for each event:
//
//     using Kind = redlock::detail::QuorumRound::Step::Kind;
//     for (;;) {
//         const auto step = round.next(clock.now());
//         if (step.kind == Kind::ask) check_out(step.node);     // then on_check_out() or on_postponed()
//         if (step.kind == Kind::give_up) check_in(step.node);  // the time of this node is over
//         if (step.kind == Kind::wait) wait(step.until);        // or until something happens
//         if (step.kind == Kind::done) break;
//     }
//
// To *check out* a connection is to take an open one, or to begin a new one. To *check it in* is to give it
// back. For an untrusted node, the driver checks out a connection only if the probe of the node is due, if
// the command is a release, or if the outcome of the round depends on the node (see needs()). Otherwise the
// node is *postponed*: nothing is sent to it, and its step `ask` comes again later. The driver can *exclude*
// a request from a node, if it would overtake an earlier command there. A release is *queued* on a connection
// that is still being made, so that it is sent even if the round ends before.
//
// The stages of one node:
//
//     stage      | meaning                                     | transitions
//     -----------+---------------------------------------------+-------------------------------------------
//     uninvolved | no request goes to the node                 |
//     unasked    | the step `ask` has not come for the node    | on_check_out() → connecting
//                |                                             | on_postponed() → postponed
//                |                                             | exclude() of its last request → over
//     postponed  | the node is untrusted, and the driver has   | as unasked
//                | checked out nothing                         |
//     connecting | a connection was checked out; no byte of    | on_sent() → sent
//                | the commands was sent                       | on_failed(), give_up → over
//     sent       | a byte of the commands may have reached the | the last on_vote() → over
//                | node                                        | on_failed(), give_up → over
//     over       | its votes are known, or will stay unknown   |
//
// In the stages unasked to sent, end() → over is possible, too. If the connection of a release breaks,
// on_failed() returns true once. The driver then checks out another connection, and calls on_check_out() or
// on_postponed() again.
//
// *node_timeout* is the time that one node may take in a round, including connecting. The round *awaits* a
// node in the stage connecting or sent if one of these is true:
//
// 1. The round is not decided yet, and its caller waits for the replies (RoundLimits::awaits_answers).
// 2. The node is trusted, and the command is a query (it only reads), a release whose caller waits for the
//    replies, or an acquisition with Round::sequential, which asks the trusted nodes one after the other.
// 3. The node is trusted, nothing was sent to it yet, and it was asked less than an eighth of node_timeout
//    ago. This gives new connections the time to send. If the round ended earlier, a lock would often be on a
//    bare majority, and be lost with the next node that fails. The case does not apply to the command that
//    writes the description of a holder, because only people read this text.
//
// The phases of the round, in their order. In each phase, the step `ask` comes for some nodes, and then
// usually the step `wait`:
//
//     phase       | nodes to ask                                | ends
//     ------------+---------------------------------------------+-------------------------------------------
//     in_turn     | the trusted nodes; each one when the        | when all of them were asked and none is
//                 | previous one is not awaited any more        | awaited
//     all_trusted | the trusted nodes, all at once              | when all of them were asked; it does not
//                 |                                             | wait
//     first_half  | the untrusted nodes, all at once            | half a node_timeout after first_half began,
//                 |                                             | or earlier if no node is awaited
//     second_half | the postponed nodes                         | when no node is awaited, but at the latest
//                 |                                             | a node_timeout after first_half began
//
// An acquisition with Round::sequential skips all_trusted. All other rounds skip in_turn. Except for a
// release, a phase asks no further nodes if a majority has become impossible, if a stop was requested, or if
// the deadline of the caller has passed.
//
// An example with five nodes and a node_timeout of 50 ms: node 5 is in back-off, and nodes 3 and 4 have just
// been frozen. The round asks nodes 1 to 4 at 0 ms, and nodes 1 and 2 grant. It postpones node 5, because
// nodes 3 and 4 could still grant. At 25 ms it does not count on them any more, so the third grant can only
// come from node 5. It asks node 5, and waits for it until 50 ms at the latest.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/verbs.hpp>
#include <redlock/error.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock::detail {

/// What a reply means as a vote. NodeReport in nodes.hpp explains the fields.
struct NodeVote {
    Vote vote = Vote::unknown;
    std::error_code cause{};
    std::uint64_t count = 0;
    QueuePlace place{};
};

class QuorumRound {
    enum class Stage : std::uint8_t { uninvolved, unasked, postponed, connecting, sent, over };

    // The phases that ask trusted nodes come first, because next_to_ask() compares phases with `<=`.
    enum class Phase : std::uint8_t { in_turn, all_trusted, first_half, second_half };

    /// Which nodes the round awaits after it is decided.
    enum class Awaited : std::uint8_t {
        trusted_nodes,    ///< Case 2 at the head of this file.
        connecting_nodes  ///< Case 3.
    };

public:
    /// What the driver has to do next.
    struct Step {
        enum class Kind : std::uint8_t { ask, give_up, wait, done };
        Kind kind = Kind::done;
        std::size_t node = 0;       ///< For ask and give_up: the index of the node.
        bool timed_out = false;     ///< For give_up: true if its silence is a failure.
        const char* detail = "";    ///< For give_up: a text for the report, such as "while connecting".
        Clock::time_point until{};  ///< For wait: when to call next() again at the latest.
    };

    /// Requires at least one request. All must have the same verb, that is, the same kind of command. The
    /// requests, the limits and the tallies must outlive the round. `round_order` says how an acquisition
    /// asks the trusted nodes: one after the other or all at once. `nodes` is N. The votes on each request
    /// are written into the tally with the same index.
    QuorumRound(std::span<const Request> requests, const RoundLimits& limits, Clock::duration node_timeout,
                Round round_order, std::size_t nodes, std::span<Tally> tallies)
        : requests_(requests),
          limits_(limits),
          node_timeout_(node_timeout),
          tallies_(tallies),
          size_(nodes),
          needed_(votes_needed()),
          release_(effect() == KeyEffect::releases) {
        if (requests_.size() > 1) many_.resize(requests_.size());
        for (std::size_t i = 0; i < requests_.size(); ++i)
            for (std::size_t node = 0; node < size_; ++node)
                if (requests_[i].to[node]) {
                    nodes_[node].stage = Stage::unasked;
                    ++counts()[i].pending;
                }
        if (effect() == KeyEffect::acquires && round_order == Round::sequential) phase_ = Phase::in_turn;
    }
    QuorumRound(const QuorumRound&) = delete;
    QuorumRound& operator=(const QuorumRound&) = delete;

    /// Sets the health of a node. Must be called before the first step.
    void set_health(std::size_t node, bool trusted, bool probe_due) noexcept {
        nodes_[node].trusted = trusted;
        nodes_[node].probe_due = probe_due;
    }

    // ---- Steps

    /// Returns the next step. The driver must execute it before the next call.
    Step next(Clock::time_point now) {
        if (const auto node = find_overdue()) return give_up(*node, now);
        for (;;) {
            if (const auto node = next_to_ask(now)) return ask(*node, now);
            if (phase_waits(now)) {
                if (awaited_ == Awaited::connecting_nodes && decided()) cap_connect_time();
                const auto until = next_deadline();
                if (until) {
                    last_wait_began_ = now;
                    return {.kind = Step::Kind::wait, .until = std::min(*until, phase_end())};
                }
            }
            if (phase_ == Phase::second_half) return {.kind = Step::Kind::done};
            enter_next_phase(now);
        }
    }

    /// Returns true if the outcome of a request depends on this node, so that it gets a connection even in
    /// back-off: without more nodes than those that are being asked, the request cannot get a majority. In
    /// the phase second_half, the nodes that are being asked do not count, because they will probably stay
    /// silent. After a refusal, an acquisition needs no further node, so that clients that compete give up
    /// soon.
    bool needs(std::size_t node) const {
        const auto possible_grants = phase_ == Phase::second_half ? 0 : count_being_asked();
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            const auto& votes = counts()[i];
            // If there are several requests, a node that has granted this one and still owes a vote on
            // another one counts twice. A node that is needed may then be left out until that vote has come.
            const bool can_win = votes.granted + votes.pending >= needed_;
            if (includes(node, i) && can_win && votes.granted + possible_grants < needed_ &&
                !refused_to_acquire())
                return true;
        }
        return false;
    }

    /// Returns false if the events since the last wait may cause another step, or an earlier end of the wait.
    /// Otherwise the driver need not call next() before the end of that wait.
    bool goes_on_waiting() {
        const bool may_ask = phase_ <= Phase::all_trusted;
        const bool caps_connect_time = awaited_ == Awaited::connecting_nodes && decided();
        return !may_ask && !caps_connect_time && next_deadline().has_value();
    }

    /// Returns the node that is being asked, if there is only one and its commands were sent.
    std::optional<std::size_t> only_one_sent() const noexcept {
        const auto node = std::ranges::find_if(all(), &Participant::is_being_asked);
        if (count_being_asked() != 1 || node->stage != Stage::sent) return std::nullopt;
        return static_cast<std::size_t>(node - all().begin());
    }

    KeyEffect effect() const noexcept { return properties().effect; }
    bool is_release() const noexcept { return release_; }
    bool awaits_answers() const noexcept { return limits_.awaits_answers; }
    bool is_connecting(std::size_t node) const noexcept { return nodes_[node].stage == Stage::connecting; }
    bool is_sent(std::size_t node) const noexcept { return nodes_[node].stage == Stage::sent; }
    bool is_being_asked(std::size_t node) const noexcept { return nodes_[node].is_being_asked(); }
    bool is_repeated(std::size_t node) const noexcept { return nodes_[node].repeated; }

    /// Returns true if the round has sent nothing to the node, because it is not trusted.
    bool is_left_alone(std::size_t node) const noexcept {
        return nodes_[node].can_be_asked() && !nodes_[node].trusted;
    }
    std::span<const Request> requests() const noexcept { return requests_; }

    /// Returns true if the request goes to the node and was not excluded.
    bool includes(std::size_t node, std::size_t request) const {
        const auto& excluded = nodes_[node].excluded;
        return requests_[request].to[node] && std::ranges::find(excluded, request) == excluded.end();
    }

    /// Returns the command to which the next reply of the node belongs. Requires that a reply is missing.
    const Command& command_of_next_reply(std::size_t node) {
        return requests_[request_of_next_reply(node)].command;
    }

    // ---- Events

    /// Records that the driver has checked out no connection, because the node is in back-off. It may be so
    /// only since a moment ago, so it is not trusted any more.
    void on_postponed(std::size_t node) noexcept {
        nodes_[node].stage = Stage::postponed;
        nodes_[node].trusted = false;
        changed_ = true;
    }

    /// Records that the driver has checked out a connection to the node. Node::check_out() decides whether
    /// the node is `worth_waiting_for`, that is, counts as trusted for the rest of the round.
    void on_check_out(std::size_t node, bool worth_waiting_for) noexcept {
        nodes_[node].stage = Stage::connecting;
        nodes_[node].trusted = worth_waiting_for;
        changed_ = true;
    }

    /// Records that the driver may not write on the connection yet, although it is ready: many rounds share
    /// it, and too many replies are pending on it.
    void on_held_back(std::size_t node) noexcept { nodes_[node].held_back = true; }

    /// Excludes a request from the node. The request is an extension that could overtake the SET of its lock,
    /// because this SET is still pending on another connection. Must be called before on_sent(). Returns
    /// false if the node has no other request.
    bool exclude(std::size_t node, std::size_t request, std::string why, Clock::time_point now) {
        count(node, request, {.cause = Errc::not_asked}, std::move(why), now);
        nodes_[node].excluded.push_back(request);
        ++nodes_[node].settled;
        return !end_if_settled(node);
    }

    /// Must be called before a byte of the commands can reach the node. Only for a queued release, it may be
    /// called later, but before the reply is taken.
    void on_sent(std::size_t node) {
        nodes_[node].stage = Stage::sent;
        for (std::size_t i = 0; i < requests_.size(); ++i)
            if (includes(node, i)) tallies_[i][node].sent = true;
    }

    /// Records the vote of the node on command_of_next_reply(). Returns true if it was the last one.
    bool on_vote(std::size_t node, const NodeVote& vote, std::string detail, Clock::time_point now) {
        auto& it = nodes_[node];
        count(node, request_of_next_reply(node), vote, std::move(detail), now);
        ++it.next_reply;
        ++it.settled;
        return end_if_settled(node);
    }

    /// Records that the node has failed. `disconnected` is true if its connection broke. Returns true if the
    /// command must be sent once more, over another connection. This is so only for a release whose
    /// connection broke: the node may still be reachable, and a second deletion does no harm.
    bool on_failed(std::size_t node, std::error_code cause, const std::string& detail, bool disconnected,
                   Clock::time_point now) {
        auto& it = nodes_[node];
        if (is_release() && disconnected && !it.repeated && now < it.deadline) {
            it.repeated = true;
            return true;
        }
        end(node, cause, detail, now);
        return false;
    }

    /// Ends the part that the node has in this round. Its missing votes stay unknown, with this cause.
    void end(std::size_t node, std::error_code cause, const std::string& detail, Clock::time_point now) {
        auto& it = nodes_[node];
        // The report of a node that was not asked shows no time. If a release is repeated, its node may be
        // postponed, but was asked before.
        const bool asked = !it.can_be_asked() || it.repeated;
        if (!asked) it.start = now;
        it.stage = Stage::over;
        changed_ = true;
        for (auto& request = it.next_reply; request < requests_.size(); ++request)
            if (includes(node, request)) {
                count(node, request, {.cause = cause}, detail, now);
                // The cause not_asked means that the command would have overtaken an earlier one.
                tallies_[request][node].left_alone = !asked && cause != Errc::not_asked;
            }
    }

private:
    /// What the round knows of one node.
    struct Participant {
        Stage stage = Stage::uninvolved;
        bool trusted = true;
        bool probe_due = false;
        bool repeated = false;       // its release is sent a second time
        bool held_back = false;      // see on_held_back()
        bool cut_short = false;      // it had too little time, so its silence is no failure
        std::size_t next_reply = 0;  // no request before this index awaits a reply
        std::size_t settled = 0;     // the number of requests that were answered or excluded
        std::vector<std::size_t> excluded{};
        Clock::time_point start{};     // when the round asked the node
        Clock::time_point deadline{};  // when the time of the node is over

        bool can_be_asked() const noexcept { return stage == Stage::unasked || stage == Stage::postponed; }
        bool is_being_asked() const noexcept { return stage == Stage::connecting || stage == Stage::sent; }
    };

    /// The votes on one request.
    struct Count {
        std::size_t granted = 0;
        std::size_t refused = 0;
        std::size_t pending = 0;  // nodes that can still grant
    };

    const VerbProperties& properties() const noexcept {
        return properties_of(requests_.front().command.verb);
    }

    /// Returns how many grants a request needs.
    std::size_t votes_needed() const noexcept {
        switch (properties().votes) {
            case VotesNeeded::quorum: return quorum(size_);
            case VotesNeeded::one: return 1;
            case VotesNeeded::none: break;
        }
        return 0;
    }

    std::size_t request_of_next_reply(std::size_t node) {
        auto& request = nodes_[node].next_reply;
        while (!includes(node, request)) ++request;
        return request;
    }

    // ---- Asking

    /// Returns the next node to ask in this phase, or nothing if none may be asked now. A release goes
    /// through the nodes in reverse order, because the first node usually has the queue of waiting clients.
    /// The client that it wakes then finds the other nodes free.
    std::optional<std::size_t> next_to_ask(Clock::time_point now) {
        const bool trusted = phase_ <= Phase::all_trusted;
        if (phase_ == Phase::in_turn && next_deadline()) return std::nullopt;
        for (; cursor_ < size_; ++cursor_) {
            const auto node = is_release() ? size_ - 1 - cursor_ : cursor_;
            if (!nodes_[node].can_be_asked() || nodes_[node].trusted != trusted) continue;
            if (asks_no_more(now)) return std::nullopt;
            ++cursor_;
            return node;
        }
        return std::nullopt;
    }

    Step ask(std::size_t node, Clock::time_point now) {
        auto& it = nodes_[node];
        const auto time_for_node = phase_ == Phase::in_turn ? fair_share(now) : node_timeout_;
        it.start = now;
        it.deadline = std::min({now + time_for_node, limits_.deadline, end_});
        it.cut_short = time_for_node < node_timeout_ / 8;
        return {.kind = Step::Kind::ask, .node = node};
    }

    /// Returns the time for the next node in turn. If the caller's time is too short for a node_timeout each,
    /// the nodes share it equally. Otherwise one frozen node could keep the others from being asked.
    Clock::duration fair_share(Clock::time_point now) const {
        const auto left = std::max(limits_.deadline - now, Clock::duration::zero());
        const auto unasked =
            std::ranges::count_if(all(), [this](const Participant& it) { return worth_asking(it); });
        return std::min(node_timeout_, left / std::max<Clock::rep>(unasked, 1));
    }

    bool asks_no_more(Clock::time_point now) {
        if (is_release()) return false;
        return impossible() || limits_.stop.stop_requested() || now >= limits_.deadline;
    }

    void enter_next_phase(Clock::time_point now) noexcept {
        cursor_ = 0;
        changed_ = true;
        if (phase_ == Phase::first_half) {
            phase_ = Phase::second_half;
            return;
        }
        phase_ = Phase::first_half;
        // Which nodes the phases after in_turn await although the round is decided: those of case 2 or 3 at
        // the head of this file.
        const bool every = (is_release() && limits_.awaits_answers) || properties().awaits_every_trusted_node;
        awaited_ = every ? Awaited::trusted_nodes : Awaited::connecting_nodes;
        half_time_ = now + node_timeout_ / 2;
        end_ = now + node_timeout_;
    }

    // ---- Waiting

    bool phase_waits(Clock::time_point now) const noexcept {
        return phase_ != Phase::all_trusted && (phase_ != Phase::first_half || now < half_time_);
    }

    Clock::time_point phase_end() const noexcept {
        return phase_ == Phase::first_half ? half_time_ : Clock::never();
    }

    /// The three cases are at the head of this file. In case 3, cap_connect_time() has set the deadline.
    bool awaits(const Participant& it) {
        if (!it.is_being_asked()) return false;
        const bool unsent = it.stage == Stage::connecting && effect() != KeyEffect::describes;
        return (it.trusted && (unsent || awaited_ == Awaited::trusted_nodes)) || !decided();
    }

    /// Returns the earliest deadline of the awaited nodes.
    std::optional<Clock::time_point> next_deadline() {
        std::optional<Clock::time_point> next;
        for (const auto& it : all())
            if (awaits(it)) next = std::min(next.value_or(it.deadline), it.deadline);
        return next;
    }

    /// Limits the time of the nodes in case 3.
    void cap_connect_time() noexcept {
        for (auto& it : all())
            if (it.stage == Stage::connecting)
                it.deadline = std::min(it.deadline, it.start + node_timeout_ / 8);
    }

    /// Returns an awaited node whose time was over when the last wait began. A node whose time ends during a
    /// wait gets one more wait, which ends at once: a reply may have come in time while this process was
    /// suspended, and the driver takes it after this wait.
    std::optional<std::size_t> find_overdue() {
        for (std::size_t node = 0; node < size_; ++node)
            if (nodes_[node].deadline <= last_wait_began_ && awaits(nodes_[node])) return node;
        return std::nullopt;
    }

    Step give_up(std::size_t node, Clock::time_point now) {
        const auto& it = nodes_[node];
        const bool by_caller = it.deadline == limits_.deadline || it.cut_short;
        // A caller that does not wait for replies has sent a release, which is queued on this connection. The
        // connection will send it, so the node has not failed, although case 3 is over.
        const bool queued = !limits_.awaits_answers && it.stage == Stage::connecting;
        // A node that has answered some of the commands has not failed either.
        const bool alive = it.settled > it.excluded.size();
        const bool held_back = it.held_back && it.stage == Stage::connecting;
        const char* detail = "";
        if (held_back)
            detail = "too many replies are pending on its connection";
        else if (!by_caller && alive)
            detail = "after it had answered others";
        else if (!by_caller && it.stage == Stage::connecting)
            detail = "while connecting";
        const auto cause = queued      ? Errc::not_awaited
                           : by_caller ? Errc::deadline
                           : held_back ? Errc::not_asked
                                       : Errc::timed_out;
        end(node, cause, detail, now);
        const bool timed_out = !by_caller && !alive && !queued && !held_back;
        return {.kind = Step::Kind::give_up, .node = node, .timed_out = timed_out, .detail = detail};
    }

    // ---- Counting

    void count(std::size_t node, std::size_t request, const NodeVote& vote, std::string detail,
               Clock::time_point now) {
        auto& report = tallies_[request][node];
        report.vote = vote.vote;
        report.cause = vote.cause;
        report.count = vote.count;
        report.place = vote.place;
        report.took = now - nodes_[node].start;
        report.detail = std::move(detail);
        auto& votes = counts()[request];
        --votes.pending;
        if (vote.vote == Vote::granted) ++votes.granted;
        if (vote.vote == Vote::refused) ++votes.refused;
        changed_ = true;
    }

    /// Ends the part of a node if all its requests are answered or excluded. Returns true if so.
    bool end_if_settled(std::size_t node) noexcept {
        auto& it = nodes_[node];
        auto& request = it.next_reply;
        while (request < requests_.size() && !includes(node, request)) ++request;
        if (request < requests_.size()) return false;
        it.stage = Stage::over;
        return true;
    }

    std::size_t count_being_asked() const noexcept {
        return static_cast<std::size_t>(std::ranges::count_if(all(), &Participant::is_being_asked));
    }

    /// Returns true if a node has refused the only request of an acquisition.
    bool refused_to_acquire() const noexcept {
        return effect() == KeyEffect::acquires && counts().front().refused > 0;
    }

    /// Returns true if the round may still ask this node. After a refusal, an acquisition asks an untrusted
    /// node only if its probe is due. Otherwise clients that compete would wait for the silent node, keep
    /// their grants meanwhile, and none of them would get a majority.
    bool worth_asking(const Participant& it) const noexcept {
        return it.can_be_asked() && (it.trusted || it.probe_due || !refused_to_acquire());
    }

    /// Returns true if no request can get the grants that it needs.
    bool impossible() {
        recount();
        return impossible_ == requests_.size();
    }
    /// Returns true if the round is decided. It counts as decided if its caller does not wait for replies.
    bool decided() {
        recount();
        return undecided_ == 0 || !limits_.awaits_answers;
    }

    /// Counts the requests that are undecided, and the requests that have become impossible. A node that is
    /// not worth asking is pending, but will not grant. Only an acquisition has such nodes, and it has one
    /// request.
    void recount() {
        if (!std::exchange(changed_, false)) return;
        const auto never_asked = static_cast<std::size_t>(std::ranges::count_if(
            all(), [this](const Participant& it) { return it.can_be_asked() && !worth_asking(it); }));
        undecided_ = 0;
        impossible_ = 0;
        for (const auto& it : counts()) {
            const bool possible = it.granted + it.pending >= needed_ + never_asked;
            if (!possible) ++impossible_;
            if (possible && it.granted < needed_) ++undecided_;
        }
    }

    std::span<Participant> all() noexcept { return {nodes_.data(), size_}; }
    std::span<const Participant> all() const noexcept { return {nodes_.data(), size_}; }
    std::span<Count> counts() noexcept { return many_.empty() ? std::span{&one_, 1} : std::span{many_}; }
    std::span<const Count> counts() const noexcept {
        return many_.empty() ? std::span{&one_, 1} : std::span{many_};
    }

    // Constant after construction.
    const std::span<const Request> requests_;
    const RoundLimits& limits_;
    const Clock::duration node_timeout_;
    const std::span<Tally> tallies_;
    const std::size_t size_;
    const std::size_t needed_;  // grants for each request
    const bool release_;

    Phase phase_ = Phase::all_trusted;
    Awaited awaited_ = Awaited::trusted_nodes;
    std::size_t cursor_ = 0;                        // how many nodes this phase has passed
    Clock::time_point half_time_ = Clock::never();  // the end of first_half
    Clock::time_point end_ = Clock::never();        // the end of second_half
    Clock::time_point last_wait_began_ = Clock::time_point::min();
    std::array<Participant, max_nodes> nodes_{};

    Count one_{};                // for a single request, so that no memory is allocated
    std::vector<Count> many_{};  // for several requests
    bool changed_ = true;        // true if undecided_ and impossible_ are out of date
    std::size_t undecided_ = 0;
    std::size_t impossible_ = 0;
};

}  // namespace redlock::detail
