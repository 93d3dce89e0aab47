#include "support/tcp_proxy.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <system_error>
#include <utility>

namespace redlock::support {

namespace {

constexpr std::size_t max_remembered = 100'000;  // commands

timespec time_until(ProxyTime due) {
    const auto left = std::max(due - std::chrono::steady_clock::now(), ProxyTime::duration::zero());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    return {.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds{left - seconds}.count()};
}

}  // namespace

TcpProxy::TcpProxy(std::uint16_t server_port)
    : server_port_(server_port), wake_up_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_up_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    listener_ = port_.listen(SOCK_NONBLOCK);
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the threads under test
    thread_ = std::thread{[this] { run(); }};
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    in_thread([] {});  // a starting thread holds locks, which a fork() now would leave locked
}

TcpProxy::~TcpProxy() {
    in_thread([this] { stopping_ = true; });
    thread_.join();
    connections_.clear();
    if (listener_ >= 0) ::close(listener_);
    ::close(wake_up_);
}

// ---- The public functions

void TcpProxy::delay(Span each_way) {
    with_faults([&](Faults& faults) { faults.delay = each_way; });
}

void TcpProxy::trickle(Span pause) {
    with_faults([&](Faults& faults) { faults.trickle = pause; });
}

void TcpProxy::hold() {
    with_faults([](Faults& faults) { faults.hold = true; });
}

void TcpProxy::release() {
    with_faults([](Faults& faults) { faults.hold = false; });
}

void TcpProxy::black_hole() {
    with_faults([](Faults& faults) { faults.hole = true; });
}

void TcpProxy::replace_replies(std::string text) {
    with_faults([&](Faults& faults) { faults.replacement = std::move(text); });
}

void TcpProxy::cut_after(std::size_t reply_bytes) {
    with_faults([&](Faults& faults) {
        faults.cut_after = reply_bytes;
        for (const auto& connection : connections_) connection->limit(faults);
    });
}

void TcpProxy::forget() {
    in_thread([this] {
        for (const auto& connection : connections_) connection->forget();
    });
}

void TcpProxy::reset() {
    in_thread([this] {
        accept_all();
        for (const auto& connection : connections_) connection->reset();
    });
}

void TcpProxy::refuse() {
    in_thread([this] {
        accept_all();
        if (listener_ >= 0) ::close(std::exchange(listener_, -1));
    });
}

void TcpProxy::heal() {
    with_faults([this](Faults& faults) {
        const auto now = std::chrono::steady_clock::now();
        for (const auto& connection : connections_) connection->heal(now, faults);
        faults = {};
        if (listener_ < 0) listener_ = port_.listen(SOCK_NONBLOCK);
    });
}

Traffic TcpProxy::traffic() const {
    Traffic traffic;
    in_thread([&] {
        traffic = traffic_;
        for (const auto& connection : connections_) {
            traffic.open += connection->over() ? 0U : 1U;
            traffic.waiting_bytes += connection->waiting();
            traffic.request_bytes += connection->request_bytes();
            traffic.reply_bytes += connection->reply_bytes();
        }
    });
    return traffic;
}

void TcpProxy::record() {
    in_thread([this] { recording_ = true; });
}

std::vector<SeenCommand> TcpProxy::commands() const {
    std::vector<SeenCommand> seen;
    in_thread([&] { seen = seen_; });
    return seen;
}

/// Runs the function in the proxy's thread, and waits until it is done.
void TcpProxy::in_thread(std::function<void()> order) const {
    std::unique_lock lock{mutex_};
    orders_.push_back(std::move(order));
    const auto mine = ++ordered_;
    ::eventfd_write(wake_up_, 1);
    carried_out_.wait(lock, [&] { return done_ >= mine; });
}

void TcpProxy::with_faults(const std::function<void(Faults&)>& change) {
    in_thread([&] { change(faults_); });
}

// ---- The proxy's thread

void TcpProxy::run() noexcept {
    ::prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds, so that delays are exact
    while (!stopping_) {
        pass_on();
        wait();
        carry_out_orders();
    }
}

void TcpProxy::carry_out_orders() {
    const std::lock_guard lock{mutex_};
    if (orders_.empty()) return;
    eventfd_t count = 0;
    ::eventfd_read(wake_up_, &count);
    for (const auto& order : orders_) order();
    done_ += orders_.size();
    orders_.clear();
    carried_out_.notify_all();
}

void TcpProxy::pass_on() {
    const auto now = std::chrono::steady_clock::now();
    for (const auto& connection : connections_)
        connection->pass_on(now, faults_, server_port_, [&](std::vector<std::string> words) {
            ++traffic_.commands;
            if (recording_ && seen_.size() < max_remembered)
                seen_.push_back({connection->number(), std::move(words)});
        });
    std::erase_if(connections_, [this](const auto& connection) {
        if (!connection->over()) return false;
        traffic_.request_bytes += connection->request_bytes();
        traffic_.reply_bytes += connection->reply_bytes();
        return true;
    });
}

void TcpProxy::wait() {
    std::vector<pollfd> fds{{wake_up_, POLLIN, 0}, {listener_, POLLIN, 0}};
    auto due = ProxyTime::max();
    for (const auto& connection : connections_) {
        fds.push_back(connection->client_events(faults_));
        fds.push_back(connection->server_events(faults_));
        due = std::min(due, connection->next_due(faults_));
    }
    timespec left{};
    if (due != ProxyTime::max()) left = time_until(due);
    if (::ppoll(fds.data(), fds.size(), due == ProxyTime::max() ? nullptr : &left, nullptr) <= 0)
        for (auto& fd : fds) fd.revents = 0;
    for (std::size_t i = 0; i < connections_.size(); ++i)
        connections_[i]->polled(fds[2 + 2 * i].revents, fds[3 + 2 * i].revents);
    if (fds[1].revents != 0) accept_all();
}

void TcpProxy::accept_all() {
    if (listener_ < 0) return;
    for (;;) {
        const int client = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client < 0 && errno == EINTR) continue;
        if (client < 0) return;
        ++traffic_.connections;
        connections_.push_back(std::make_unique<ProxiedConnection>(client, traffic_.connections, faults_));
    }
}

}  // namespace redlock::support
