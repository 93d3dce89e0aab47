// All that a connection needs of the world: sockets, time, randomness. RedisNodes takes OsNetwork; the
// simulation and the fuzzers run the same connections, nodes and rounds over networks of their own.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>

#include "os/resolution.hpp"

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

/// One stream socket. Closed when destroyed. The functions that transfer bytes return how many, 0 when the
/// peer has closed, and a negated errno otherwise; none of them blocks unless told to.
class Socket {
public:
    enum class Wait : bool { no, yes };

    virtual ~Socket() = default;
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    /// For poll().
    virtual int fd() const noexcept = 0;
    /// Nothing while it is still connecting; then 0, or why it could not be connected (an errno).
    virtual std::optional<int> connect_result() noexcept = 0;
    virtual std::ptrdiff_t send(std::string_view bytes) = 0;
    /// Wait::yes blocks for a part of the node's budget at most; a signal ends the wait.
    virtual std::ptrdiff_t receive(std::span<char> bytes, Wait wait) = 0;
    /// Whether something has come in, if only the end of the stream. Reads nothing.
    virtual bool has_input() const noexcept = 0;
    /// What has not been sent yet is dropped on closing, where a plain close would go on sending it.
    virtual void drop_unsent() noexcept = 0;

protected:
    Socket() = default;
};

/// One entry of a wait: for what, and whether it came.
struct PollEntry {
    const Socket* socket = nullptr;  ///< null while a name is being resolved
    int fd = -1;
    bool writes = false;  ///< for room to write, or the end of connecting
    bool reads = true;
    bool ready = false;
};

/// A function that is called beside the threads of the user, by a thread that lives only while there is
/// something to do.
class BackgroundTask {
public:
    /// Returns when the function is to be called again; Clock::never() if there is nothing left to do.
    using Function = std::function<Clock::time_point(Clock::time_point now)>;

    /// Waits for the end of a call that is under way. No further one begins.
    virtual ~BackgroundTask() = default;
    BackgroundTask(const BackgroundTask&) = delete;
    BackgroundTask& operator=(const BackgroundTask&) = delete;

    /// Has the function called soon. Does nothing if no thread can be started.
    virtual void start() noexcept = 0;

protected:
    BackgroundTask() = default;
};

class Network {
public:
    /// The most entries of one wait: one for each node, or for each Sentinel of a node.
    static constexpr std::size_t max_entries = 16;

    virtual Clock& clock() noexcept = 0;
    virtual Entropy& entropy() noexcept = 0;

    /// A socket that is connecting; null and `error` (an errno) if there is none to be had. Wait::yes will
    /// block for `longest_wait` at most.
    virtual std::unique_ptr<Socket> connect(const Address& address, std::chrono::milliseconds longest_wait,
                                            int& error) = 0;

    /// Waits for the first max_entries of them. Returns when one of the entries is ready, or at `until`, up
    /// to a millisecond later; sets `ready`. Or as soon as `stop` is stopped.
    virtual void wait(std::span<PollEntry> entries, Clock::time_point now, Clock::time_point until,
                      const std::stop_token& stop = {}) = 0;

    /// The task does nothing before it is started.
    virtual std::unique_ptr<BackgroundTask> make_task(BackgroundTask::Function function) = 0;

protected:
    ~Network() = default;
};

}  // namespace redlock
