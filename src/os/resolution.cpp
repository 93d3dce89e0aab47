#include "resolution.hpp"

#include "scoped_signal_block.hpp"

#include <netdb.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

namespace redlock {
namespace {

/// The host names, with their ports, that one process is looking up at present.
struct LookUps {
    const std::int64_t process = this_process();
    LookUps* of_the_parent = nullptr;  // kept reachable for leak checkers
    std::mutex mutex{};
    std::map<std::string, std::weak_ptr<Resolution>> by_name{};  // guarded by mutex
};

/// Returns the look-ups of this process. A child of fork() makes new ones. The object is never destroyed,
/// because a look-up may outlive main().
LookUps& look_ups() {
    static std::atomic<LookUps*> current = nullptr;
    return detail::of_this_process(current, [](LookUps* parents) {
        return std::unique_ptr<LookUps>{new LookUps{.of_the_parent = parents}};
    });
}

Resolution::Found call_getaddrinfo(const std::string& host, std::uint16_t port, int flags) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* first = nullptr;
    const auto service = std::to_string(port);
    errno = 0;
    const int status = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &first);
    // glibc reports an unknown name, too, if it has no descriptor to read /etc/hosts. Only errno differs.
    const auto cause = cause_of_errno(status == EAI_MEMORY ? ENOMEM : errno);
    if (status != 0) return {.error = ::gai_strerror(status), .cause = cause};
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned{first, &::freeaddrinfo};
    Resolution::Found found;
    for (const auto* it = first; it; it = it->ai_next) {
        Address address;
        std::memcpy(&address.storage, it->ai_addr, it->ai_addrlen);
        address.length = it->ai_addrlen;
        found.addresses.push_back(address);
    }
    return found;
}

/// Calls `find` and turns an exception into an error, because no exception may leave a thread.
template <class Find>
Resolution::Found outcome_of(const Find& find) noexcept {
    try {
        return find();
    } catch (const std::exception& error) {
        return {.error = error.what(), .cause = shortage()};
    }
}

}  // namespace

std::string text_of(const Address& address) {
    if (address.storage.ss_family == AF_UNIX)
        return reinterpret_cast<const sockaddr_un*>(&address.storage)->sun_path;
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    const auto* const generic = reinterpret_cast<const sockaddr*>(&address.storage);
    if (::getnameinfo(generic, address.length, host.data(), host.size(), port.data(), port.size(),
                      NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return "an unknown address";
    const std::string name{host.data()};
    return (name.find(':') == name.npos ? name : "[" + name + "]") + ":" + port.data();
}

std::shared_ptr<Resolution> Resolution::known(Found found) {
    std::shared_ptr<Resolution> resolution{new Resolution};
    resolution->finish(std::move(found));
    return resolution;
}

std::string_view Resolution::address_bytes(std::size_t index) const noexcept {
    if (!done() || addresses().empty()) return {};
    const auto& address = addresses()[index % addresses().size()];
    return {reinterpret_cast<const char*>(&address.storage), address.length};
}

/// Returns a resolution, and calls `start` with it, which starts the thread. If there is no descriptor or no
/// thread left, the resolution has failed.
template <class Start>
std::shared_ptr<Resolution> Resolution::by_thread(const char* purpose, Start start) {
    std::shared_ptr<Resolution> resolution{new Resolution};
    std::string problem = "no descriptor is available to wait for an address";
    try {
        if (resolution->pipe_.emplace().read_end() >= 0) {
            const ScopedSignalBlock blocked;
            start(resolution);
            return resolution;
        }
    } catch (const std::system_error&) {
        problem = std::string{"no thread is available to "} + purpose;
    }
    resolution->finish({.error = std::move(problem), .cause = shortage()});
    return resolution;
}

std::shared_ptr<Resolution> Resolution::of_host(const std::string& host, std::uint16_t port) {
    auto numeric = call_getaddrinfo(host, port, AI_NUMERICHOST);
    if (!numeric.addresses.empty()) return known(std::move(numeric));
    const auto name = host + ":" + std::to_string(port);
    auto& under_way = look_ups();
    const std::lock_guard guard{under_way.mutex};
    if (const auto it = under_way.by_name.find(name); it != under_way.by_name.end())
        if (auto shared = it->second.lock()) return shared;
    return by_thread("resolve the name", [&](const std::shared_ptr<Resolution>& resolution) {
        // The thread is detached, because it may outlive every caller. It keeps everything alive that it
        // uses.
        std::thread{[resolution, host, port, name, &under_way] {
            auto found = outcome_of([&] { return call_getaddrinfo(host, port, AI_ADDRCONFIG); });
            {
                const std::lock_guard ended{under_way.mutex};
                under_way.by_name.erase(name);
            }
            resolution->finish(std::move(found));
        }}.detach();
        under_way.by_name[name] = resolution;
    });
}

std::shared_ptr<Resolution> Resolution::in_thread(std::function<Found(const std::stop_token&)> find) {
    return by_thread("query the Sentinels", [&find](const std::shared_ptr<Resolution>& resolution) {
        resolution->thread_ = std::make_unique<std::jthread>(
            [&it = *resolution, find = std::move(find)](const std::stop_token& stop) {
                it.finish(outcome_of([&] { return find(stop); }));
            });
    });
}

std::shared_ptr<Resolution> Resolution::of_unix_socket(const std::string& path) {
    Address address;
    auto* const local = reinterpret_cast<sockaddr_un*>(&address.storage);
    local->sun_family = AF_UNIX;
    std::memcpy(local->sun_path, path.data(), std::min(path.size(), sizeof local->sun_path - 1));
    address.length = sizeof *local;
    return known({.addresses = {address}});
}

/// In a child of fork(), the object of the thread is kept for ever: it must be neither joined nor detached,
/// because a new thread of the child may have its identifier.
Resolution::~Resolution() {
    if (process_ != this_process()) (void)thread_.release();
}

void Resolution::finish(Found found) noexcept {
    found_ = std::move(found);
    done_.store(true, std::memory_order_release);
    if (pipe_) pipe_->write();
}

}  // namespace redlock
