// The addresses of a server, found without blocking the caller (rule D5). The caller polls fd() together with
// its sockets.
//
//     server       | found by                                   | when the last owner is destroyed
//     -------------+--------------------------------------------+------------------------------------------
//     an address   | nobody: the result is known at once        |
//     a host name  | a detached thread in getaddrinfo(). All    | The thread stays until getaddrinfo()
//                  | callers that ask for the same host and     | returns, because nothing can interrupt
//                  | port at the same time share it.            | it. Then it frees its memory and ends.
//     Sentinels    | a thread that belongs to this Resolution   | The thread is asked to stop and is joined.
//
// The detached thread may still be inside getaddrinfo() while the process exits. That is safe, because it
// uses neither OpenSSL nor anything that is destroyed after main().
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/error.hpp>
#include <redlock/process.hpp>

#include "socket.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace redlock {

struct Address {
    sockaddr_storage storage{};
    socklen_t length = 0;
};

/// Returns the address for people, such as "10.0.0.1:6379", "[::1]:6379" or the path of a socket.
std::string text_of(const Address& address);

class Resolution : detail::NotCopied {
public:
    struct Found {
        std::vector<Address> addresses{};
        std::string error{};                              ///< why there are no addresses, for people
        std::error_code cause = Errc::connection_failed;  ///< the same for the code; may be shortage()
    };

    static std::shared_ptr<Resolution> of_host(const std::string& host, std::uint16_t port);
    static std::shared_ptr<Resolution> of_unix_socket(const std::string& path);
    static std::shared_ptr<Resolution> known(Found found);
    /// Calls `find` in a thread of its own. `find` must return soon after stop is requested.
    static std::shared_ptr<Resolution> in_thread(std::function<Found(const std::stop_token&)> find);

    ~Resolution();

    bool done() const noexcept { return done_.load(std::memory_order_acquire); }
    /// Returns a descriptor that becomes readable once the resolution is done. Returns -1 if it was done from
    /// the start.
    int fd() const noexcept { return pipe_ ? pipe_->read_end() : -1; }

    // Once done:
    const std::vector<Address>& addresses() const noexcept { return found_.addresses; }
    /// Returns the bytes of an address, which identify the server. Counts on from the first address after the
    /// last one. Returns no bytes if there is no address, also if the resolution is not done.
    std::string_view address_bytes(std::size_t index) const noexcept;
    const std::string& error() const noexcept { return found_.error; }
    std::error_code cause() const noexcept { return found_.cause; }

private:
    Resolution() = default;
    template <class Start>
    static std::shared_ptr<Resolution> by_thread(const char* purpose, Start start);
    void finish(Found found) noexcept;

    const std::int64_t process_ = this_process();
    std::atomic<bool> done_{false};
    std::optional<Pipe> pipe_{};  // unless it was done from the start
    Found found_{};               // written before done_ is set, read after
    // Destroyed first: the thread is asked to stop and joined, because it uses the others.
    std::unique_ptr<std::jthread> thread_{};
};

}  // namespace redlock
