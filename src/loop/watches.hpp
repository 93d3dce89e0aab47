// The descriptors that one event loop watches for the library.
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/event_loop.hpp>

#include "../os/network.hpp"

#include <span>
#include <vector>

namespace redlock::loop {

class Watches : detail::NotCopied {
public:
    explicit Watches(EventLoop& loop) : loop_(&loop) {}

    /// Has the loop watch the descriptors of these entries, and no others. Each is watched until on_ready().
    /// After that, the function must be called again. If it throws std::bad_alloc, some are not watched yet.
    void watch(std::span<const PollEntry> entries);

    /// Is called before a socket is closed.
    void forget(int fd) noexcept;

    /// The loop has found this descriptor ready. Returns the descriptor in the entries, or -1.
    int on_ready(int fd) noexcept;

    /// Stops watching, for ever.
    void detach() noexcept;

private:
    /// The state of one descriptor. The descriptor of a name that is being resolved can be in the entries of
    /// several loops. A loop may refuse to watch one descriptor twice, so it watches a duplicate.
    struct Watch {
        int fd;  // in the entries
        int watched =
            fd;  // fd or its duplicate; it was passed to EventLoop::watch(), and not yet to forget()
        bool reads = false;  // the loop watches it for reading
        bool writes = false;

        bool is_for(const PollEntry& entry) const noexcept {
            return fd == entry.fd && (fd == watched) == (entry.socket != nullptr);
        }
    };

    void end_all_but(std::span<const PollEntry> entries) noexcept;
    Watch& of(const PollEntry& entry);
    void set(Watch& it, bool reads, bool writes);
    void drop(const Watch& it) noexcept;

    EventLoop* loop_;  // null once detached
    std::vector<Watch> watches_{};
};

}  // namespace redlock::loop
