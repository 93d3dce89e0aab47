// The operating system's sockets, clock and generator.
#pragma once

#include "os/network.hpp"

#include <array>
#include <atomic>
#include <memory>

namespace redlock {

/// The descriptors that are open, so that a child of fork() can close its copies without touching anything
/// that another thread of the parent may have been about to change: no lock, no memory.
class OpenDescriptors {
public:
    OpenDescriptors() = default;
    ~OpenDescriptors();
    OpenDescriptors(const OpenDescriptors&) = delete;
    OpenDescriptors& operator=(const OpenDescriptors&) = delete;

    /// Throws std::bad_alloc; then `fd` is not noted.
    void add(int fd);
    void remove(int fd) noexcept;
    /// In the child: closes its copies. The parent's connections stay as they are.
    void close_all() noexcept;

private:
    struct Block {
        std::array<std::atomic<int>, 62> fds{};  // descriptor + 1; 0: free
        std::atomic<Block*> next{nullptr};
    };
    Block first_{};
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

    /// In a child of fork(): the sockets here are the parent's. Closed without a word to the servers.
    void close_in_child() noexcept { open_->close_all(); }

private:
    // Shared by the sockets, which may outlive this.
    std::shared_ptr<OpenDescriptors> open_ = std::make_shared<OpenDescriptors>();
};

}  // namespace redlock
