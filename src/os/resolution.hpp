// The addresses of a host, looked up without blocking the caller (rule D5).
//
// A numeric address is known at once. A name is looked up by a thread, because getaddrinfo() can block for as
// long as it likes and nothing can stop it; a caller polls fd() beside everything else. There is one such
// thread for a host and port in a process: all that ask for them meanwhile share its answer. So with whatever
// else takes time to find.
#pragma once

#include <redlock/error.hpp>

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace redlock {

struct Address {
    sockaddr_storage storage{};
    socklen_t length = 0;
};

class Resolution {
public:
    struct Found {
        std::vector<Address> addresses{};
        std::string error{};                              ///< why there are none
        std::error_code cause = Errc::connection_failed;  ///< the same, for those who decide
    };

    /// Starts a look-up, or finishes it at once where none is needed, or joins the one that is under way.
    static std::shared_ptr<Resolution> of_host(const std::string& host, std::uint16_t port);
    static std::shared_ptr<Resolution> of_unix_socket(const std::string& path);
    /// Has a thread find what is called `name`, or joins the one that is about it.
    static std::shared_ptr<Resolution> in_thread(const std::string& name, std::function<Found()> find);

    /// Blocks for as long as the system's resolver likes.
    static Found look_up(const std::string& host, std::uint16_t port);

    Resolution(const Resolution&) = delete;
    Resolution& operator=(const Resolution&) = delete;
    ~Resolution();

    bool done() const noexcept { return done_.load(std::memory_order_acquire); }
    /// Readable, for poll(), once done; -1 where it was done from the start.
    int fd() const noexcept { return read_end_; }

    // Once done:
    const std::vector<Address>& addresses() const noexcept { return found_.addresses; }
    const std::string& error() const noexcept { return found_.error; }
    std::error_code cause() const noexcept { return found_.cause; }

private:
    Resolution() = default;
    void finish(Found found) noexcept;

    std::atomic<bool> done_{false};
    int read_end_ = -1;
    int write_end_ = -1;
    Found found_{};  // written before done_ is set, read after
};

}  // namespace redlock
