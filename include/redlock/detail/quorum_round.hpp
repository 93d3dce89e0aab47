// One round over N nodes, for one request or for many: which node is asked when, what its answer means for
// the votes, and when to stop waiting. Every rule of a round stands here and nowhere else.
//
// Pure: no sockets, no clock and no lock of its own. A driver owns the connections; it does what next() asks
// for, and reports what came of it:
//
//     using Kind = redlock::detail::QuorumRound::Step::Kind;
//     for (;;) {
//         const auto step = round.next(clock.now());
//         if (step.kind == Kind::ask) check_out(step.node);     // on_check_out() or on_left_alone()
//         if (step.kind == Kind::give_up) check_in(step.node);  // its time is over
//         if (step.kind == Kind::wait) wait(step.until);        // or for on_sent(), on_vote(), on_failed()
//         if (step.kind == Kind::done) break;
//     }
//
// The part of one node in the round:
//
//     stage      | what holds                                     | left by
//     -----------+------------------------------------------------+-------------------------------
//     uninvolved | no request goes to it                          |
//     unasked    | its turn has not come                          | next() → ask
//     left_alone | it failed a moment ago, and is not needed yet  | next() → ask, if it is needed
//     connecting | nothing can be sent yet                        | on_sent, on_failed, give_up
//     sent       | a byte of the commands may have reached it     | on_vote (last), on_failed, give_up
//     over       | its votes are known, or will not be            |
//
// An acquire asks one node after the other (the page's step 2), or all at once; every other round asks all at
// once. Nodes that are not trusted come last, all at once, within one budget. At half of it those that were
// left alone are asked after all where the vote has come to hang on them. A round ends when its votes are
// decided; a query waits for every trusted node, and so does a release, unless nobody is going to hear its
// answers. A release is written from the last node to the first: a waiter that the first node wakes is to
// find the others free.
#pragma once

#include <redlock/clock.hpp>
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

/// What a reply means as a vote.
struct NodeVote {
    Vote vote = Vote::unknown;
    std::error_code cause{};
    std::uint64_t count = 0;
    QueuePlace place{};
};

class QuorumRound {
public:
    struct Step {
        enum class Kind : std::uint8_t { ask, give_up, wait, done };
        Kind kind = Kind::done;
        std::size_t node = 0;       ///< of ask and give_up
        bool timed_out = false;     ///< of give_up: it used up its own budget, not the caller's time
        const char* detail = "";    ///< of give_up: what it was doing
        Clock::time_point until{};  ///< of wait
    };

    /// The requests and tallies must outlive it. All requests have the same verb.
    QuorumRound(std::span<const Request> requests, const RoundLimits& limits, Clock::duration node_timeout,
                Round order, std::size_t nodes, std::span<Tally> tallies)
        : requests_(requests),
          limits_(limits),
          node_timeout_(node_timeout),
          tallies_(tallies),
          size_(nodes),
          needed_(votes_needed()),
          release_(verb() == Verb::compare_and_delete) {
        if (requests_.size() > 1) many_.resize(requests_.size());
        for (std::size_t i = 0; i < requests_.size(); ++i)
            for (std::size_t node = 0; node < size_; ++node)
                if (requests_[i].to[node]) {
                    nodes_[node].stage = Stage::unasked;
                    ++counts()[i].pending;
                }
        if (acquires(verb()) && order == Round::sequential) phase_ = Phase::in_turn;
    }
    QuorumRound(const QuorumRound&) = delete;
    QuorumRound& operator=(const QuorumRound&) = delete;

    /// Before the first step: whether the node is trusted to answer; if not, whether its next probe is due.
    void set_health(std::size_t node, bool trusted, bool probe_due) noexcept {
        nodes_[node].trusted = trusted;
        nodes_[node].probe_due = probe_due;
    }

    // ---- What to do.

    Step next(Clock::time_point now) {
        if (const auto node = find_overdue()) return give_up(*node, now);
        for (;;) {
            if (const auto node = next_to_ask(now)) return ask(*node, now);
            if (waits_for_answers(now)) {
                if (awaited_ == Awaited::while_undecided && decided()) cap_connect_time();
                const auto until = next_deadline();
                if (until != Clock::time_point::min()) {
                    looked_at_ = now;
                    return {.kind = Step::Kind::wait, .until = std::min(until, phase_end())};
                }
            }
            if (phase_ == Phase::second_half) return {};
            enter_next_phase(now);
        }
    }

    /// Whether a quorum is out of reach without the node, but not with it, so that it is asked whatever its
    /// health. A release goes to every node anyway, so this does not matter to it.
    bool needs(std::size_t node) const {
        const auto asked = phase_ == Phase::second_half ? 0 : open();
        for (std::size_t i = 0; i < requests_.size(); ++i) {
            const auto& votes = counts()[i];
            const bool lost = votes.granted + votes.pending < needed_;
            if (includes(node, i) && !lost && votes.granted + asked < needed_ && !refused_to_acquire())
                return true;
        }
        return false;
    }

    /// Whether `node` is the only one that a reply can come from.
    bool is_only_one_sent(std::size_t node) const noexcept {
        return nodes_[node].stage == Stage::sent && open() == 1;
    }

    Verb verb() const noexcept { return requests_.front().command.verb; }
    bool is_release() const noexcept { return release_; }
    bool awaits_answers() const noexcept { return limits_.awaits_answers; }
    bool is_connecting(std::size_t node) const noexcept { return nodes_[node].stage == Stage::connecting; }
    bool is_sent(std::size_t node) const noexcept { return nodes_[node].stage == Stage::sent; }
    bool is_open(std::size_t node) const noexcept { return nodes_[node].open(); }
    bool is_repeated(std::size_t node) const noexcept { return nodes_[node].repeated; }
    bool is_left_alone(std::size_t node) const noexcept { return nodes_[node].stage == Stage::left_alone; }
    std::span<const Request> requests() const noexcept { return requests_; }

    /// Whether the request is sent to the node; false also where exclude() was said.
    bool includes(std::size_t node, std::size_t request) const {
        const auto& excluded = nodes_[node].excluded;
        return requests_[request].to[node] && std::ranges::find(excluded, request) == excluded.end();
    }

    /// The command that the node's next reply answers.
    const Command& next_answered(std::size_t node) {
        auto& it = nodes_[node];
        while (!includes(node, it.next)) ++it.next;
        return requests_[it.next].command;
    }

    // ---- What came of it.

    void on_left_alone(std::size_t node) noexcept {
        nodes_[node].stage = Stage::left_alone;
        nodes_[node].trusted = false;
        changed_ = true;
    }

    void on_check_out(std::size_t node, bool trusted) noexcept {
        nodes_[node].stage = Stage::connecting;
        nodes_[node].trusted = trusted;
        changed_ = true;
    }

    /// This request is not sent to the node, though it was to be. Said before on_sent(). False: nothing is
    /// left.
    bool exclude(std::size_t node, std::size_t request, std::string why, Clock::time_point now) {
        count(node, request, {.cause = Errc::not_asked}, std::move(why), now);
        nodes_[node].excluded.push_back(request);
        ++nodes_[node].answered;
        return !end_if_answered(node);
    }

    /// From now on a byte of its commands may reach the node.
    void on_sent(std::size_t node) {
        nodes_[node].stage = Stage::sent;
        for (std::size_t i = 0; i < requests_.size(); ++i)
            if (includes(node, i)) tallies_[i][node].sent = true;
    }

    /// The reply to next_answered(). True: it was the node's last.
    bool on_vote(std::size_t node, const NodeVote& vote, std::string detail, Clock::time_point now) {
        auto& it = nodes_[node];
        (void)next_answered(node);
        count(node, it.next++, vote, std::move(detail), now);
        ++it.answered;
        return end_if_answered(node);
    }

    /// The connection has failed, or its answer cannot be right. True: the commands are to be sent once
    /// more, over another connection; to delete twice does no harm, and the failure may have been the
    /// connection's.
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

    /// The rest of the node's votes stays unknown.
    void end(std::size_t node, std::error_code cause, const std::string& detail, Clock::time_point now) {
        auto& it = nodes_[node];
        if (it.stage == Stage::left_alone && !it.repeated) it.start = now;  // it took no time
        it.stage = Stage::over;
        changed_ = true;
        for (; it.next < requests_.size(); ++it.next)
            if (includes(node, it.next)) count(node, it.next, {.cause = cause}, detail, now);
    }

private:
    enum class Stage : std::uint8_t { uninvolved, unasked, left_alone, connecting, sent, over };

    enum class Phase : std::uint8_t {
        in_turn,      ///< the trusted nodes, one after the other
        all_trusted,  ///< the trusted nodes, all at once
        first_half,   ///< of one more budget: the others
        second_half   ///< once more those that were left alone
    };

    enum class Awaited : std::uint8_t {
        while_undecided,  ///< whoever can still change the outcome
        trusted_nodes     ///< the trusted nodes in any case, the others while the votes are undecided
    };

    struct Node {
        Stage stage = Stage::uninvolved;
        bool trusted = true;
        bool probe_due = false;
        bool repeated = false;
        bool cut_short = false;    // the caller's time leaves it so little that its silence means nothing
        std::size_t next = 0;      // the request whose answer comes next
        std::size_t answered = 0;  // or excluded
        std::vector<std::size_t> excluded{};
        Clock::time_point start{};
        Clock::time_point deadline{};

        bool unasked() const noexcept { return stage == Stage::unasked || stage == Stage::left_alone; }
        bool open() const noexcept { return stage == Stage::connecting || stage == Stage::sent; }
    };

    /// How the votes on one request stand.
    struct Count {
        std::size_t granted = 0;
        std::size_t refused = 0;
        std::size_t pending = 0;  // nodes that may yet grant it
    };

    /// A queue is one node's; to a query each answer counts, and to a note none.
    std::size_t votes_needed() const noexcept {
        if (verb() == Verb::query || verb() == Verb::note_holder) return 0;
        return verb() == Verb::enter_queue ? 1 : quorum(size_);
    }

    // ---- Asking

    std::optional<std::size_t> next_to_ask(Clock::time_point now) {
        const bool trusted = phase_ <= Phase::all_trusted;
        if (phase_ == Phase::in_turn && next_deadline() != Clock::time_point::min()) return std::nullopt;
        for (; cursor_ < size_; ++cursor_) {
            const auto node = is_release() ? size_ - 1 - cursor_ : cursor_;
            if (!nodes_[node].unasked() || nodes_[node].trusted != trusted) continue;
            if (is_over(now)) return std::nullopt;
            ++cursor_;
            return node;
        }
        return std::nullopt;
    }

    Step ask(std::size_t node, Clock::time_point now) {
        auto& it = nodes_[node];
        const auto budget = phase_ == Phase::in_turn ? fair_share(now) : node_timeout_;
        it.start = now;
        it.deadline = std::min({now + budget, limits_.deadline, end_});
        it.cut_short = budget < node_timeout_ / 8;
        return {.kind = Step::Kind::ask, .node = node};
    }

    /// Where the caller's time does not suffice for every node's whole budget, each gets as much as the
    /// others: one that hangs must not keep the rest from being asked.
    Clock::duration fair_share(Clock::time_point now) const {
        const auto left = std::max(limits_.deadline - now, Clock::duration::zero());
        const auto unasked =
            std::ranges::count_if(all(), [this](const Node& it) { return worth_asking(it); });
        return std::min(node_timeout_, left / std::max<Clock::rep>(unasked, 1));
    }

    /// No further node is to be asked. A release goes to every node, whatever the others have answered.
    bool is_over(Clock::time_point now) {
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
        const bool all = (is_release() && limits_.awaits_answers) || verb() == Verb::query;
        awaited_ = all ? Awaited::trusted_nodes : Awaited::while_undecided;
        half_time_ = now + node_timeout_ / 2;
        end_ = now + node_timeout_;
    }

    // ---- Waiting

    bool waits_for_answers(Clock::time_point now) const noexcept {
        return phase_ != Phase::all_trusted && (phase_ != Phase::first_half || now < half_time_);
    }

    Clock::time_point phase_end() const noexcept {
        return phase_ == Phase::first_half ? half_time_ : Clock::never();
    }

    /// A trusted node is sent its command even where its connection takes longer than the votes, if not much
    /// longer: a lock on exactly a quorum survives no further node. A note is worth no wait.
    bool awaits(const Node& it) {
        if (!it.open()) return false;
        const bool unsent = it.stage == Stage::connecting && verb() != Verb::note_holder;
        return (it.trusted && (unsent || awaited_ == Awaited::trusted_nodes)) || !decided();
    }

    /// When the next of those awaited runs out of time; the beginning of time if none is awaited any more.
    Clock::time_point next_deadline() {
        auto next = Clock::time_point::min();
        for (const auto& it : all())
            if (awaits(it))
                next = next == Clock::time_point::min() ? it.deadline : std::min(next, it.deadline);
        return next;
    }

    /// When the votes have decided, a connection that is still being made gets an eighth of its budget in
    /// all.
    void cap_connect_time() noexcept {
        for (auto& it : all())
            if (it.stage == Stage::connecting)
                it.deadline = std::min(it.deadline, it.start + node_timeout_ / 8);
    }

    /// Late is only what was late when the driver looked last: an answer that came in time counts, however
    /// late this process gets to read it.
    std::optional<std::size_t> find_overdue() {
        for (std::size_t node = 0; node < size_; ++node)
            if (nodes_[node].deadline <= looked_at_ && awaits(nodes_[node])) return node;
        return std::nullopt;
    }

    Step give_up(std::size_t node, Clock::time_point now) {
        const auto& it = nodes_[node];
        const bool callers = it.deadline == limits_.deadline || it.cut_short;
        // Its release stays queued, and an eighth of node_timeout says nothing of the node.
        const bool queued = !limits_.awaits_answers && it.stage == Stage::connecting;
        // One that has answered some of its commands is alive: the rest is for another round.
        const bool alive = it.answered > it.excluded.size();
        const char* detail = "";
        if (!callers && alive)
            detail = "after it had answered others";
        else if (!callers && it.stage == Stage::connecting)
            detail = "while connecting";
        const auto cause = queued ? Errc::not_awaited : callers ? Errc::deadline : Errc::timed_out;
        end(node, cause, detail, now);
        const bool timed_out = !callers && !alive && !queued;
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

    bool end_if_answered(std::size_t node) noexcept {
        auto& it = nodes_[node];
        while (it.next < requests_.size() && !includes(node, it.next)) ++it.next;
        if (it.next < requests_.size()) return false;
        it.stage = Stage::over;
        return true;
    }

    std::size_t open() const noexcept {
        return static_cast<std::size_t>(std::ranges::count_if(all(), &Node::open));
    }

    bool refused_to_acquire() const noexcept { return acquires(verb()) && counts().front().refused > 0; }

    /// Where another holds the resource on some node, a node that is not trusted is asked only if its probe
    /// is due: to wait for it would keep from others what was granted elsewhere. Clients that collide would
    /// each hold a part for a whole budget, and none of them ever all.
    bool worth_asking(const Node& it) const noexcept {
        return it.unasked() && (it.trusted || it.probe_due || !refused_to_acquire());
    }

    bool impossible() {
        recount();
        return impossible_ == requests_.size();
    }
    bool decided() {
        recount();
        return undecided_ == 0 || !limits_.awaits_answers;
    }

    void recount() {
        if (!std::exchange(changed_, false)) return;
        const auto given_up = static_cast<std::size_t>(std::ranges::count_if(
            all(), [this](const Node& it) { return it.unasked() && !worth_asking(it); }));
        undecided_ = 0;
        impossible_ = 0;
        for (const auto& it : counts()) {
            const bool possible = it.granted + it.pending >= needed_ + given_up;
            if (!possible) ++impossible_;
            if (possible && it.granted < needed_) ++undecided_;
        }
    }

    std::span<Node> all() noexcept { return {nodes_.data(), size_}; }
    std::span<const Node> all() const noexcept { return {nodes_.data(), size_}; }
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
    const std::size_t needed_;  // votes
    const bool release_;

    Phase phase_ = Phase::all_trusted;
    Awaited awaited_ = Awaited::trusted_nodes;
    std::size_t cursor_ = 0;                                  // the next node of this phase
    Clock::time_point half_time_ = Clock::never();            // of the last budget
    Clock::time_point end_ = Clock::never();                  // of the last budget
    Clock::time_point looked_at_ = Clock::time_point::min();  // when the driver looked for news last
    std::array<Node, max_nodes> nodes_{};

    Count one_{};                // of the only request: no memory is allocated for it
    std::vector<Count> many_{};  // of several
    bool changed_ = true;        // since these were counted:
    std::size_t undecided_ = 0;
    std::size_t impossible_ = 0;
};

}  // namespace redlock::detail
