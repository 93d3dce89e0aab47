// The interface to the operating system: sockets, time, randomness. RedisNodes uses OsNetwork. The simulation
// and the fuzzers run the same connections, nodes and rounds over networks of their own.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/entropy.hpp>

#include "resolution.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

namespace redlock {

/// One stream socket. The destructor closes it. The functions that transfer bytes return the number of bytes,
/// 0 if the peer has closed the connection, or a negated errno. None of them blocks, except receive() with
/// Wait::yes.
class Socket : detail::NotCopied {
public:
    enum class Wait : bool { no, yes };

    virtual ~Socket() = default;

    /// Returns the descriptor for poll().
    virtual int fd() const noexcept = 0;
    /// Returns nothing while the socket is connecting. After that, returns 0 or the reason why it could not
    /// connect (an errno).
    virtual std::optional<int> connect_result() noexcept = 0;
    virtual std::ptrdiff_t send(std::string_view bytes) = 0;
    /// Wait::yes blocks until bytes arrive, a signal arrives, or `longest_wait` of Network::connect() has
    /// passed.
    virtual std::ptrdiff_t receive(std::span<char> bytes, Wait wait) = 0;
    /// Returns true if there is something to read, which includes the end of the stream. Reads nothing.
    virtual bool has_input() const noexcept = 0;
    /// Bytes that have not been sent yet will be discarded when the socket is closed. Otherwise the kernel
    /// would go on sending them.
    virtual void drop_unsent() noexcept = 0;
};

/// One descriptor that Network::wait() waits for, the events to wait for, and the result.
struct PollEntry {
    const Socket* socket = nullptr;  ///< null while a name is being resolved
    int fd = -1;
    bool writes = false;  ///< waits until it can write, or has connected
    bool reads = true;
    bool ready = false;
    std::uint16_t node = 0;  ///< for the caller: the Node object that the descriptor belongs to
    bool unsent = false;     ///< for the caller: Connection::unsent()
    Clock::time_point until = Clock::never();  ///< The entry is ready then at the latest.
};

/// A function that is called in the background, in a thread that exists only while there is something to do.
class BackgroundTask : detail::NotCopied {
public:
    /// Returns when the function must be called again, or Clock::never() if there is nothing left to do.
    using Function = std::function<Clock::time_point(Clock::time_point now)>;

    /// Waits until a running call has returned. The function is not called again.
    virtual ~BackgroundTask() = default;

    /// Makes the thread call the function soon. Does nothing if no thread can be started.
    virtual void start() noexcept = 0;
};

/// Lets another thread end a Network::wait().
class Wakeup : detail::NotCopied {
public:
    virtual ~Wakeup() = default;

    /// Returns an entry that is ready after wake(), until reset().
    virtual PollEntry poll_entry() const noexcept = 0;
    virtual void wake() noexcept = 0;
    /// Requires that wake() was called since the last reset().
    virtual void reset() noexcept = 0;
};

class Network {
public:
    /// The largest number of entries for which wait() needs no memory: one for each node and a Wakeup, or one
    /// for each Sentinel of a node. The servers of a Redis Cluster can be more.
    static constexpr std::size_t max_entries = 16;

    virtual Clock& clock() noexcept = 0;
    virtual Entropy& entropy() noexcept = 0;

    /// Returns a socket that is connecting. On failure, returns null and sets `error` to an errno.
    /// Socket::receive() with Wait::yes will block for `longest_wait` at most.
    virtual std::unique_ptr<Socket> connect(const Address& address, std::chrono::milliseconds longest_wait,
                                            int& error) = 0;
    /// Is called before a socket of this network is closed.
    virtual void forget(int /*fd*/) noexcept {}

    /// Waits until one of the entries is ready, and sets `ready` in each of those that are. Also returns at
    /// `until` (up to a millisecond later), and as soon as `stop` is requested. It may return earlier, for
    /// example because of a signal. If there is no memory, it may set `ready` in entries that are not.
    void wait(std::span<PollEntry> entries, Clock::time_point now, Clock::time_point until,
              const std::stop_token& stop = {}) {
        auto first = Clock::never();
        for (const auto& it : entries) first = std::min(first, it.until);
        wait_for_descriptors(entries, now, std::min(first, until), stop);
        if (first == Clock::never()) return;
        const auto after = clock().now();
        for (auto& it : entries) it.ready = it.ready || it.until <= after;
    }

    /// Returns a task that does nothing until it is started. Returns null if the network has no background
    /// tasks. Only a Lane uses them, so the networks of event loops have none.
    // NOLINTNEXTLINE(performance-unnecessary-value-param): OsNetwork moves it
    virtual std::unique_ptr<BackgroundTask> make_task(BackgroundTask::Function /*function*/) {
        return nullptr;
    }

    /// Returns null if the system has no descriptor left, or if one thread alone uses the network.
    virtual std::unique_ptr<Wakeup> make_wakeup() { return nullptr; }

protected:
    ~Network() = default;

    /// Does what wait() does, but ignores PollEntry::until.
    virtual void wait_for_descriptors(std::span<PollEntry> entries, Clock::time_point now,
                                      Clock::time_point until, const std::stop_token& stop) = 0;
};

}  // namespace redlock
