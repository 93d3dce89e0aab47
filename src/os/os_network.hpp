// The Network of the operating system: its sockets, clock and random number generator.
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/process.hpp>
#include <redlock/redis_nodes.hpp>

#include "network.hpp"

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace redlock {

/// The open descriptors of an OsNetwork. A child of fork() uses the list to close its copies. It may neither
/// lock a mutex nor allocate memory for that (docs/architecture.md, After a fork()). Therefore the list is
/// lock-free. It has the device and the inode of each descriptor, and the child closes only descriptors that
/// still have them.
class OpenDescriptors : detail::NotCopied {
public:
    ~OpenDescriptors();

    /// Returns false in a child of fork(). There no number of the list may be used except by close_all().
    bool in_owning_process() const noexcept { return process_ == this_process(); }

    /// Throws std::bad_alloc. Then `fd` has not been added.
    void add(int fd);
    void remove(int fd) noexcept;
    /// Closes all descriptors that still are the ones that were added. In a child of fork() these are copies,
    /// and the connections of the parent stay open.
    void close_all() noexcept;

private:
    static constexpr int none = -1;
    static constexpr int claimed = -2;
    struct Entry {
        std::atomic<int> fd;  // `none` if the entry is free, `claimed` while add() fills it
        dev_t device = 0;
        ino_t inode = 0;
        Entry* next = nullptr;
    };

    Entry& claim_entry();

    const std::int64_t process_ = this_process();
    std::atomic<Entry*> first_{nullptr};  // no entry is removed
};

class OsNetwork final : public Network {
public:
    /// `keepalive` is NodesOptions::tcp_keepalive.
    explicit OsNetwork(std::chrono::seconds keepalive = NodesOptions{}.tcp_keepalive)
        : keepalive_(keepalive) {}

    Clock& clock() noexcept override { return boot_clock(); }
    Entropy& entropy() noexcept override { return os_entropy(); }
    std::unique_ptr<Socket> connect(const Address& address, std::chrono::milliseconds longest_wait,
                                    int& error) override;
    void wait_for_descriptors(std::span<PollEntry> entries, Clock::time_point now, Clock::time_point until,
                              const std::stop_token& stop) override;
    /// The task runs in a thread (background_thread.cpp), and may outlive the network.
    std::unique_ptr<BackgroundTask> make_task(BackgroundTask::Function function) override;
    std::unique_ptr<Wakeup> make_wakeup() override;

    /// For a child of fork(): closes its copies of the parent's sockets without sending anything to the
    /// servers.
    void close_in_child() noexcept { open_->close_all(); }

private:
    std::chrono::seconds keepalive_;
    // Shared with the sockets, which may outlive the network.
    std::shared_ptr<OpenDescriptors> open_ = std::make_shared<OpenDescriptors>();
};

}  // namespace redlock
