// The Network of the operating system: its sockets, clock and random number generator.
#pragma once

#include "os/network.hpp"

#include <atomic>
#include <memory>

namespace redlock {

/// The open descriptors of an OsNetwork. A child of fork() uses the list to close its copies. It may neither
/// lock a mutex nor allocate memory for that, because another thread of the parent may have been in the
/// middle of a change. Therefore the list is lock-free.
class OpenDescriptors {
public:
    OpenDescriptors() = default;
    ~OpenDescriptors();
    OpenDescriptors(const OpenDescriptors&) = delete;
    OpenDescriptors& operator=(const OpenDescriptors&) = delete;

    /// Throws std::bad_alloc. Then `fd` has not been added.
    void add(int fd);
    void remove(int fd) noexcept;
    /// Closes all descriptors. In a child of fork() these are copies, and the connections of the parent stay
    /// open.
    void close_all() noexcept;

private:
    static constexpr int none = -1;
    struct Slot {
        std::atomic<int> fd;  // `none` if the slot is free
        Slot* next;
    };
    std::atomic<Slot*> first_{nullptr};  // no slot is removed
};

class OsNetwork final : public Network {
public:
    Clock& clock() noexcept override { return boot_clock(); }
    Entropy& entropy() noexcept override { return os_entropy(); }
    std::unique_ptr<Socket> connect(const Address& address, std::chrono::milliseconds longest_wait,
                                    int& error) override;
    void wait(std::span<PollEntry> entries, Clock::time_point now, Clock::time_point until,
              const std::stop_token& stop = {}) override;
    std::unique_ptr<BackgroundTask> make_task(BackgroundTask::Function function) override;
    std::unique_ptr<Wakeup> make_wakeup() override;

    /// For a child of fork(): closes its copies of the parent's sockets without sending anything to the
    /// servers.
    void close_in_child() noexcept { open_->close_all(); }

private:
    // Shared with the sockets, which may outlive the network.
    std::shared_ptr<OpenDescriptors> open_ = std::make_shared<OpenDescriptors>();
};

}  // namespace redlock
