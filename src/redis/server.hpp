// What a process knows about the server of one node:
//
//     knowledge                                     | learned from
//     ----------------------------------------------+-----------------------------------------------------
//     its health (node_health.hpp)                  | succeeded(), replied_late(), connected(), failed()
//     the releases that it has to get again         | KeptReleases
//     its addresses, and which of them is tried     | addresses(), connected(), leave_address()
//     first                                         |
//     which server the Sentinels have named last    | learn_master()
//     how many connections of all groups drain      | draining()
//     the events that the observer has not got yet  | disconnected(), failed(), wrote(), ...
//
// All groups of a RedisNodes share one object for each node, or for each server of a Redis Cluster.
//
// Any thread may call the functions. Most lock the mutex of the object, but never during a system call
// (except for a random number after a failure). Those that say so do not lock it while the server is *calm*:
// it has not failed since it has last answered in time. Otherwise threads of low priority could delay the
// rounds (lane.hpp).
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/observer.hpp>

#include "../os/resolution.hpp"
#include "../round/connection_choice.hpp"
#include "../round/kept_releases.hpp"
#include "../round/node_health.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace redlock {

class Connection;
struct NodeConfig;

/// A call of a function of the observer. It is kept until a round is over, because no mutex may be held while
/// the observer is called. `node` is the name of the node.
using NodeEvent = std::function<void(Observer& observer, std::string_view node)>;

class Server {
public:
    // ---- Its health

    /// A server that has failed is not trusted until it answers again. Until then, it is mostly left alone
    /// unless a *probe* is due: an attempt to reach it (node_health.hpp).
    struct Health {
        bool trusted = true;
        bool probe_due = false;
        bool probed = false;  ///< a probe is under way
    };
    /// First trusts the server again if a late reply has come and the pause is over. Does not lock while the
    /// server is calm.
    Health health(Clock::time_point now) noexcept;
    /// Returns the choice of a connection for a command. Knows by itself whether the node is trusted, and
    /// whether a probe is due. Begins a probe if the command is one. Does not lock while the server is calm.
    detail::ConnectionChoice choose(detail::ConnectionSituation in, Clock::time_point now, Entropy& entropy);

    /// Records that the server has answered the handshake of this connection. The next connection begins with
    /// the same address.
    void connected(const Connection& connection) noexcept;
    /// Records that the server has answered a command in time. Does not lock while the server is calm.
    void succeeded() noexcept;
    /// Records that a reply has come that no round awaits. Does not lock while the server is calm.
    void replied_late() noexcept;
    /// Records that the server has failed at this instant. The next probe is due after a pause, which is
    /// longer after each failure until succeeded(). In the pause, another failure only replaces
    /// last_failure().
    void failed(detail::NodeFailure failure, Clock::time_point now, Entropy& entropy);

    /// Must be called after a round that has left the node alone. If a probe is due, the kept releases are
    /// the probe. Otherwise a client whose acquisitions are all refused would not send them.
    void let_releases_probe(Clock::time_point now, Entropy& entropy);

    /// Returns the last failure, which may be long ago. The cause is empty if the node has never failed.
    detail::NodeFailure last_failure();

    /// Returns the releases that are to be sent again.
    KeptReleases& kept() noexcept { return kept_; }

    // ---- Its addresses

    struct Addresses {
        std::shared_ptr<Resolution> resolution;
        /// The index of the one to try first: 0, or what Connection::next_address() or present_address() of
        /// an earlier connection has returned.
        std::size_t first = 0;
    };
    /// Returns the addresses for a new connection: those that were found last. If Sentinels name the server,
    /// they are queried for each connection. Connections that are begun during a query share it.
    Addresses addresses(const NodeConfig& config);
    /// If the connection never got ready, and not in a shortage of this process, or if it has led to a
    /// replica, its address may be dead or outdated. Then the next one begins with another address, and first
    /// resolves the name of the host again. A replica that stays one causes this once a second at most.
    void leave_address(const Connection& connection) noexcept;
    /// If the last query of the Sentinels is over, learns which server they have named. Returns a number that
    /// grows when they name another server than before.
    std::uint64_t learn_master();
    /// Returns true if the connection leads to another server than learn_master() has learned last.
    bool is_former(const Connection& connection) noexcept;

    // ---- The draining connections of all groups. Each counts itself until it is used again or destroyed.

    std::atomic<std::size_t>& draining() noexcept { return draining_; }

    // ---- For the observer. An event is dropped if there is no memory for it.

    /// Must be called if somebody calls take_events(). Otherwise no events are recorded, without locking.
    void observe() noexcept { is_observed_ = true; }
    /// Records `cause` and `why`, or the failure of a broken connection.
    void disconnected(const Connection& connection, std::error_code cause = {},
                      const char* why = "") noexcept;
    /// Records that collected commands were written.
    void wrote(std::size_t commands, Clock::duration waited) noexcept;
    /// Returns the events since the last call.
    std::vector<NodeEvent> take_events();

private:
    template <class Event>
    void add(Event event) noexcept;

    std::mutex mutex_{};
    // Guarded by mutex_.
    detail::NodeHealth health_{};
    std::shared_ptr<Resolution> resolution_{};  // the newest; a connection may still use an older one
    std::size_t first_address_ = 0;     // the index of the address that the next connection tries first
    Clock::time_point next_look_up_{};  // see leave_address(), for a replica
    std::string named_{};               // bytes of the address that the Sentinels have named last
    std::uint64_t masters_ = 0;         // see learn_master()
    std::vector<NodeEvent> events_{};

    KeptReleases kept_{};  // has a mutex of its own
    // The server is calm, so its health cannot change before it fails. Written under mutex_.
    std::atomic<bool> calm_{true};
    std::atomic<std::size_t> draining_{0};
    std::atomic<bool> is_observed_{false};
};

}  // namespace redlock
