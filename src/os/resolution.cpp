#include "os/resolution.hpp"

#include "os/signals_blocked.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

namespace redlock {

std::shared_ptr<Resolution> Resolution::of_host(const std::string& host, std::uint16_t port) {
    std::shared_ptr<Resolution> resolution{new Resolution};
    resolution->look_up(host, port, AI_NUMERICHOST);
    if (!resolution->addresses_.empty()) {
        resolution->finish();
        return resolution;
    }
    resolution->error_.clear();
    std::array<int, 2> ends{};
#if defined(__linux__)
    const int made = ::pipe2(ends.data(), O_CLOEXEC);
#else
    const int made = ::pipe(ends.data());
    if (made == 0)
        for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
    if (made != 0) {
        resolution->error_ = "no descriptor left to resolve the name";
        resolution->finish();
        return resolution;
    }
    resolution->read_end_ = ends[0];
    resolution->write_end_ = ends[1];
    try {
        const SignalsBlocked blocked;
        // Detached: it may outlive everybody who waits for it, and keeps alive all that it touches.
        std::thread{[resolution, host, port] {
            resolution->look_up(host, port, AI_ADDRCONFIG);
            resolution->finish();
        }}.detach();
    } catch (const std::system_error&) {
        resolution->error_ = "no thread to resolve the name";
        resolution->finish();
    }
    return resolution;
}

std::shared_ptr<Resolution> Resolution::of_unix_socket(const std::string& path) {
    std::shared_ptr<Resolution> resolution{new Resolution};
    Address address;
    auto* const local = reinterpret_cast<sockaddr_un*>(&address.storage);
    local->sun_family = AF_UNIX;
    std::memcpy(local->sun_path, path.data(), std::min(path.size(), sizeof local->sun_path - 1));
    address.length = sizeof *local;
    resolution->addresses_.push_back(address);
    resolution->finish();
    return resolution;
}

Resolution::~Resolution() {
    if (read_end_ >= 0) ::close(read_end_);
    if (write_end_ >= 0) ::close(write_end_);
}

void Resolution::look_up(const std::string& host, std::uint16_t port, int flags) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (status != 0) {
        error_ = ::gai_strerror(status);
        return;
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned{found, &::freeaddrinfo};
    for (const auto* it = found; it; it = it->ai_next) {
        Address address;
        std::memcpy(&address.storage, it->ai_addr, it->ai_addrlen);
        address.length = it->ai_addrlen;
        addresses_.push_back(address);
    }
}

void Resolution::finish() noexcept {
    done_.store(true, std::memory_order_release);
    if (write_end_ >= 0) (void)!::write(write_end_, "", 1);
}

}  // namespace redlock
