// The descriptors that the rounds of one event loop wait for.
#pragma once

#include <redlock/event_loop.hpp>

#include "../os/network.hpp"
#include "scheduler.hpp"

#include <vector>

namespace redlock::loop {

class Watches {
public:
    explicit Watches(EventLoop& loop) : loop_(&loop) {}
    Watches(const Watches&) = delete;
    Watches& operator=(const Watches&) = delete;

    /// Has the task woken once, and `entry.ready` set, when the descriptor of the entry is ready. After that
    /// the task must call the function again. Does nothing if the task waits for the entry already. The entry
    /// must stay where it is until end(). May throw std::bad_alloc.
    void begin(Task& task, PollEntry& entry);

    /// The task does not wait for this entry any more. Does nothing if it does not wait for it.
    void end(const PollEntry& entry) noexcept;

    /// Is called before a socket is closed.
    void forget(int fd) noexcept;

    void on_ready(int fd) noexcept;

    /// Stops watching, for ever.
    void detach() noexcept;

private:
    struct Waiting {
        Task* task;
        PollEntry* entry;
    };

    /// The state of one descriptor. The descriptor of a name that is being resolved can belong to several
    /// waits, in several loops. A loop may refuse to watch one descriptor twice, so it watches a duplicate.
    struct Watch {
        std::vector<Waiting> waiting{};
        int duplicate = -1;    // what the loop watches in place of this descriptor
        int original = -1;     // the descriptor of which this one is the duplicate
        bool reads = false;    // the loop watches it for reading
        bool writes = false;   // the loop watches it for writing
        bool watched = false;  // it was passed to EventLoop::watch(), and not yet to forget()
    };

    Watch& of(int fd);
    void watch(int fd, const PollEntry& entry);
    void close_duplicate(Watch& watch) noexcept;

    EventLoop* loop_;             // null once detached
    std::vector<Watch> of_fd_{};  // by descriptor, which is a small number
};

}  // namespace redlock::loop
