// One node as all threads share it: its connections between the rounds, and whether it is trusted to answer.
//
// A connection that owes nothing is idle and serves whoever comes next. One that owes replies is kept until
// they have come: the release of a SET must go behind it on the same connection (rule B5), and its replies
// are read whenever the node is looked at. A node that failed is suspected: no round waits for it unless the
// vote hangs on it, and it gets no new command until a probe, one connection at a time, was greeted, or until
// an old connection has paid what it owed.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/endpoint.hpp>
#include <redlock/nodes.hpp>
#include <redlock/redis_nodes.hpp>

#include "connection.hpp"
#include "resolution.hpp"
#include "tls.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

namespace redlock {

/// Why a node was given up the last time.
struct Failure {
    std::error_code cause{};
    std::string detail{};
};

/// What an observer hears of a node: kept here until the round is over and no mutex is held.
struct NodeEvent {
    enum class Kind : std::uint8_t { connecting, disconnected, backing_off };
    Kind kind = Kind::connecting;
    Failure failure{};
    Clock::duration pause{};
};

/// What to expect of a node before it is asked.
enum class Standing : std::uint8_t {
    trusted,    ///< to answer
    due,        ///< suspected, and its next probe is due
    suspected,  ///< and to be left alone, unless there is no quorum without it
};

/// A connection for one exchange, and whether it is worth waiting for whatever the votes are.
struct Loan {
    std::unique_ptr<Connection> connection{};
    bool trusted = false;
};

class Node {
public:
    /// No I/O. `tls` is null for plain connections.
    Node(Endpoint endpoint, std::shared_ptr<const TlsContext> tls, const NodesOptions& options);

    /// Reads what has come in since, and says what to expect.
    Standing look(Clock::time_point now);

    /// A connection for `command`; none if the node is left alone for now (`last_failure()` says why). A node
    /// that is suspected gives one only when its next probe is due, or `needed`, or to a release.
    Loan lend(const Command& command, Clock::time_point now, bool needed);

    /// The same for commands of several owners, of which none may be unreleased().
    Loan lend_to_many(Clock::time_point now, bool needed);

    /// The owners of SETs that are under way and were not released: what else they send goes behind those.
    std::vector<std::string> unreleased();

    /// Takes it back, in whatever state.
    void give_back(std::unique_ptr<Connection> connection, Clock::time_point now);

    /// The node answered; the node did not.
    void succeeded();
    void failed(Failure failure, Clock::time_point now);

    Failure last_failure();

    /// What has happened since the last call.
    std::vector<NodeEvent> take_events();

private:
    struct Idle {
        std::unique_ptr<Connection> connection;
        Clock::time_point since;
    };
    struct Owing {
        std::unique_ptr<Connection> connection;
        Clock::time_point until;  // nothing it has sent matters any more after this
    };

    void collect(Clock::time_point now);
    void look_at_probe(Clock::time_point now);
    std::vector<Owing>::iterator carrier_of(std::string_view owner);
    std::vector<Owing>::iterator any_owing();
    std::unique_ptr<Connection> take(std::vector<Owing>::iterator it);
    std::unique_ptr<Connection> take_idle(Clock::time_point now, bool release);
    std::unique_ptr<Connection> take_idle_or_new(Clock::time_point now, bool release);
    std::unique_ptr<Connection> connect(Clock::time_point now);
    Loan lend_any(bool release, Clock::time_point now, bool needed);
    Loan lend_suspected(bool release, Clock::time_point now, bool due);
    void keep(std::unique_ptr<Connection> connection, Clock::time_point now);
    void keep_idle(std::unique_ptr<Connection> connection, Clock::time_point now);
    void keep_owing(std::unique_ptr<Connection> connection, Clock::time_point until);
    void forgive() noexcept;
    void drop(std::unique_ptr<Connection> connection, Failure why = {});
    void note(NodeEvent event);
    void suspect(Failure failure, Clock::time_point now);

    // Constant after construction.
    const Endpoint endpoint_;
    const std::shared_ptr<const TlsContext> tls_;
    const NodesOptions options_;

    // Guarded by mutex_, which is never held across a wait.
    std::mutex mutex_;
    std::shared_ptr<Resolution> resolution_{};
    std::size_t first_address_ = 0;
    std::vector<Idle> idle_{};
    std::vector<Owing> owing_{};
    std::unique_ptr<Connection> probe_{};
    bool suspected_ = false;
    bool alive_ = false;  // has replied, late, since it was suspected
    int failures_ = 0;    // in a row
    Clock::time_point next_probe_{};
    Failure last_failure_{};
    std::vector<NodeEvent> events_{};
};

}  // namespace redlock
