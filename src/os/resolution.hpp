// The addresses of a host, looked up without blocking the caller (rule D5).
//
// A numeric address is known at once. A name is looked up by a thread, because getaddrinfo() can block for as
// long as it likes and nothing can stop it; a caller polls fd() beside everything else. There is one such
// thread for a host and port in a process: all that ask for them meanwhile share its answer.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace redlock {

struct Address {
    sockaddr_storage storage{};
    socklen_t length = 0;
};

class Resolution {
public:
    /// Starts a look-up, or finishes it at once where none is needed, or joins the one that is under way.
    static std::shared_ptr<Resolution> of_host(const std::string& host, std::uint16_t port);
    static std::shared_ptr<Resolution> of_unix_socket(const std::string& path);

    Resolution(const Resolution&) = delete;
    Resolution& operator=(const Resolution&) = delete;
    ~Resolution();

    bool done() const noexcept { return done_.load(std::memory_order_acquire); }
    /// Readable, for poll(), once done; -1 where it was done from the start.
    int fd() const noexcept { return read_end_; }

    // Once done:
    const std::vector<Address>& addresses() const noexcept { return addresses_; }
    const std::string& error() const noexcept { return error_; }  ///< why there are no addresses

private:
    Resolution() = default;
    void look_up(const std::string& host, std::uint16_t port, int flags);
    void finish() noexcept;

    std::atomic<bool> done_{false};
    int read_end_ = -1;
    int write_end_ = -1;
    // Written before done_ is set, read after.
    std::vector<Address> addresses_{};
    std::string error_{};
};

}  // namespace redlock
