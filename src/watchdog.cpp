// The one thread that this library starts, and only for who makes a Watchdog.
#include <redlock/process.hpp>
#include <redlock/watchdog.hpp>
#include <redlock/watchlist.hpp>

#include "os/signals_blocked.hpp"

#include <stop_token>
#include <thread>
#include <utility>

namespace redlock {

class Watchdog::Impl {
public:
    explicit Impl(Clock& clock) : list_(std::make_shared<Watchlist>(clock)) {
        const SignalsBlocked blocked;
        // The thread keeps the list: it may outlive this, see below.
        thread_ = std::thread{[list = list_, stop = stop_.get_token()] { list->run(stop); }};
    }

    /// From within its own callback it cannot wait for itself.
    ~Impl() {
        stop_.request_stop();
        if (thread_.get_id() == std::this_thread::get_id())
            thread_.detach();
        else
            thread_.join();
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    bool here() const noexcept { return process_ == this_process(); }
    Watchlist& list() noexcept { return *list_; }

private:
    std::int64_t process_ = this_process();
    std::shared_ptr<Watchlist> list_;
    std::stop_source stop_{};
    std::thread thread_{};
};

Watchdog::Watchdog(Clock& clock) : clock_(&clock), impl_(new Impl(clock)) {}

Watchdog::~Watchdog() {
    if (auto* const impl = impl_.load(); impl->here()) delete impl;
}

Clock& Watchdog::clock() noexcept {
    return *clock_;
}

void Watchdog::watch(std::shared_ptr<Watch> watch) {
    here().list().watch(std::move(watch));
}

void Watchdog::unwatch(Watch& watch) noexcept {
    if (auto* const impl = impl_.load(); impl->here()) impl->list().unwatch(watch);
}

/// A child of fork() has the watchdog but not its thread: it gets one of its own when it first needs it, and
/// leaves the parent's state as it is (rule D10).
Watchdog::Impl& Watchdog::here() {
    auto* impl = impl_.load();
    if (impl->here()) return *impl;
    auto mine = std::make_unique<Impl>(*clock_);
    if (impl_.compare_exchange_strong(impl, mine.get())) return *mine.release();
    return *impl;  // another thread of the child was faster
}

}  // namespace redlock
