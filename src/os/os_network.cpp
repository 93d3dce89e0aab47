#include "os_network.hpp"

#include "socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace redlock {

// ---- Descriptors

OpenDescriptors::~OpenDescriptors() {
    for (auto* entry = first_.load(); entry != nullptr;) delete std::exchange(entry, entry->next);
}

/// Returns an entry that no other thread uses until `fd` is stored in it.
OpenDescriptors::Entry& OpenDescriptors::claim_entry() {
    for (auto* entry = first_.load(); entry != nullptr; entry = entry->next)
        if (int free = none; entry->fd.compare_exchange_strong(free, claimed)) return *entry;
    auto* const mine = new Entry{.fd = claimed, .next = first_.load()};
    while (!first_.compare_exchange_weak(mine->next, mine)) {
    }
    return *mine;
}

void OpenDescriptors::add(int fd) {
    struct stat file {};
    (void)::fstat(fd, &file);  // cannot fail, because the descriptor is open
    auto& entry = claim_entry();
    entry.device = file.st_dev;
    entry.inode = file.st_ino;
    entry.fd = fd;
}

void OpenDescriptors::remove(int fd) noexcept {
    for (auto* entry = first_.load(); entry != nullptr; entry = entry->next)
        if (int noted = fd; entry->fd.compare_exchange_strong(noted, none)) return;
}

void OpenDescriptors::close_all() noexcept {
    for (auto* entry = first_.load(); entry != nullptr; entry = entry->next) {
        const int noted = entry->fd.exchange(none);
        struct stat file {};
        if (noted >= 0 && ::fstat(noted, &file) == 0 && file.st_dev == entry->device &&
            file.st_ino == entry->inode)
            ::close(noted);
    }
}

// ---- Sockets

namespace {

class OsSocket final : public Socket {
public:
    OsSocket(const Address& address, std::chrono::milliseconds longest_wait,
             std::shared_ptr<OpenDescriptors> open)
        : address_(address), longest_wait_(longest_wait), open_(std::move(open)) {}

    /// Removes the descriptor from the list before closing it. If a child is forked in between, it keeps one
    /// copy open. In the other order, the child could close a descriptor that another thread has just opened
    /// with the same number. A child that destroys a socket of its parent leaves the descriptor to
    /// OpenDescriptors::close_all().
    ~OsSocket() override {
        if (fd_ < 0 || !open_->in_owning_process()) return;
        open_->remove(fd_);
        ::close(fd_);
    }

    /// Opens the socket and starts to connect. Returns an errno, or 0. Throws std::bad_alloc.
    int open(std::chrono::seconds keepalive) {
        fd_ = open_socket(address_.storage.ss_family, keepalive);
        if (fd_ < 0) return errno;
        open_->add(fd_);
        return connect_result().value_or(0);
    }

    int fd() const noexcept override { return fd_; }

    // In a child of fork(), the sockets of the parent are broken.

    /// The first call starts to connect. Further calls ask the kernel for the result.
    std::optional<int> connect_result() noexcept override {
        if (!open_->in_owning_process()) return EBADF;
        const auto* const to = reinterpret_cast<const sockaddr*>(&address_.storage);
        connected_ = connected_ || ::connect(fd_, to, address_.length) == 0 || errno == EISCONN;
        if (connected_) return 0;
        if (errno == EALREADY || errno == EINPROGRESS || errno == EINTR) return std::nullopt;
        return errno;
    }

    std::ptrdiff_t send(std::string_view bytes) noexcept override {
        if (!open_->in_owning_process()) return -EBADF;
        return result(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    }

    std::ptrdiff_t receive(std::span<char> bytes, Wait wait) noexcept override {
        if (!open_->in_owning_process()) return -EBADF;
        if (wait == Wait::yes && !std::exchange(blocks_, true)) make_blocking(fd_, longest_wait_);
        return result(::recv(fd_, bytes.data(), bytes.size(), wait == Wait::yes ? 0 : MSG_DONTWAIT));
    }

    bool has_input() const noexcept override {
        char byte = 0;
        const auto seen = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        return seen >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
    }

    void drop_unsent() noexcept override {
        const linger none{.l_onoff = 1, .l_linger = 0};
        if (open_->in_owning_process()) ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    }

private:
    static std::ptrdiff_t result(ssize_t transferred) noexcept {
        return transferred < 0 ? -errno : transferred;
    }

    int fd_ = -1;
    const Address address_;
    const std::chrono::milliseconds longest_wait_;
    const std::shared_ptr<OpenDescriptors> open_;
    bool connected_ = false;
    bool blocks_ = false;  // from the first call with Wait::yes on; all other calls say MSG_DONTWAIT
};

}  // namespace

std::unique_ptr<Socket> OsNetwork::connect(const Address& address, std::chrono::milliseconds longest_wait,
                                           int& error) {
    error = EBADF;
    if (!open_->in_owning_process()) return nullptr;  // what the parent has begun is not for the child
    auto socket = std::make_unique<OsSocket>(address, longest_wait, open_);
    error = socket->open(keepalive_);
    if (error != 0) return nullptr;
    return socket;
}

void OsNetwork::wait_for_descriptors(std::span<PollEntry> entries, Clock::time_point now,
                                     Clock::time_point until, const std::stop_token& stop) {
    std::array<pollfd, max_entries + 1> few{};
    std::vector<pollfd> many;  // for the servers of a large Redis Cluster
    try {
        if (entries.size() > max_entries) many.resize(entries.size() + 1);
    } catch (const std::bad_alloc&) {  // the others count as ready, and the next call tries again soon
        using namespace std::chrono_literals;
        for (auto& it : entries.subspan(max_entries)) it.ready = true;
        until = std::min<Clock::time_point>(until, now + 10ms);
    }
    const std::span<pollfd> fds = many.empty() ? std::span<pollfd>{few} : std::span<pollfd>{many};
    const auto count = std::min(entries.size(), fds.size() - 1);
    for (std::size_t i = 0; i < count; ++i)
        fds[i] = {
            .fd = entries[i].fd,
            .events = static_cast<short>((entries[i].reads ? POLLIN : 0) | (entries[i].writes ? POLLOUT : 0)),
            .revents = 0};
    std::optional<Pipe> stopped;
    if (stop.stop_possible()) stopped.emplace();
    const std::stop_callback on_stop{stop, [&stopped] { stopped->write(); }};
    fds[count] = {.fd = stopped ? stopped->read_end() : -1, .events = POLLIN, .revents = 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
    const auto wait = std::clamp<std::chrono::milliseconds>(left, {}, std::chrono::hours{1});
    // poll() ignores a negative descriptor.
    if (::poll(fds.data(), static_cast<nfds_t>(count + 1), static_cast<int>(wait.count())) <= 0) return;
    for (std::size_t i = 0; i < count; ++i) entries[i].ready = fds[i].revents != 0;
}

namespace {

/// Does nothing in a child of fork().
class OsWakeup final : public Wakeup {
public:
    explicit OsWakeup(std::shared_ptr<OpenDescriptors> open) : open_(std::move(open)) {}
    /// The pipe is closed after that, see ~OsSocket().
    ~OsWakeup() override {
        if (open_->in_owning_process())
            for (const int fd : pipe_.ends()) open_->remove(fd);
    }

    /// Returns false if there is no pipe. Throws std::bad_alloc.
    bool open() {
        if (pipe_.read_end() < 0) return false;
        for (const int fd : pipe_.ends()) open_->add(fd);
        return true;
    }

    PollEntry poll_entry() const noexcept override { return {.fd = pipe_.read_end()}; }
    void wake() noexcept override { pipe_.write(); }
    void reset() noexcept override {
        std::array<char, 64> bytes;
        if (open_->in_owning_process()) (void)!::read(pipe_.read_end(), bytes.data(), bytes.size());
    }

private:
    const std::shared_ptr<OpenDescriptors> open_;
    const Pipe pipe_{};
};

}  // namespace

std::unique_ptr<Wakeup> OsNetwork::make_wakeup() {
    auto wakeup = std::make_unique<OsWakeup>(open_);
    if (!wakeup->open()) return nullptr;
    return wakeup;
}

}  // namespace redlock
