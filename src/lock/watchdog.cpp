// The threads of a Watchdog: one for each Nodes whose locks it extends, with a BlockingRenewals.
#include <redlock/detail/not_copied.hpp>
#include <redlock/process.hpp>
#include <redlock/watchdog.hpp>

#include "../os/scoped_signal_block.hpp"
#include "blocking_renewals.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace redlock {
namespace detail {

RenewalContext& renewal_context() noexcept {
    // A static lock uses the context after the thread_local objects of the main thread were destroyed.
    static_assert(std::is_trivially_destructible_v<RenewalContext>);
    thread_local RenewalContext context;
    return context;
}

}  // namespace detail

class Watchdog::Impl : detail::NotCopied {
    /// A BlockingRenewals and the thread that makes its passes.
    struct Worker : detail::NotCopied {
        explicit Worker(Clock& clock) : renewals(std::make_shared<detail::BlockingRenewals>(clock)) {
            const ScopedSignalBlock blocked;
            // The thread shares the ownership of the renewals, because it may outlive this worker, see the
            // destructor.
            thread = std::jthread{[its = renewals](const std::stop_token& stop) { its->run(stop); }};
        }

        /// Ends the thread. A callback that the thread itself has called may destroy the watchdog. The thread
        /// cannot wait for itself then. Therefore it is detached, and ends after the callback.
        ~Worker() {
            thread.request_stop();
            if (thread.get_id() == std::this_thread::get_id()) thread.detach();
        }

        const std::shared_ptr<detail::BlockingRenewals> renewals;
        const Nodes* nodes = nullptr;  ///< whose locks it extends, or has extended last
        std::jthread thread{};
    };

public:
    explicit Impl(Clock& clock) : clock_(clock) { workers_.push_back(std::make_unique<Worker>(clock)); }

    const std::int64_t process = this_process();

    /// Asks all threads to stop before it waits for the first one.
    ~Impl() {
        for (const auto& worker : workers_) worker->thread.request_stop();
    }

    void add(detail::Acquisition acquisition) {
        const std::lock_guard guard{mutex_};
        auto& worker = worker_for_locked(acquisition.state->terms.nodes);
        worker.renewals->add(std::move(acquisition));
    }

    void remove(const detail::Acquisition& acquisition) noexcept {
        if (auto* const worker = find(acquisition.state->terms.nodes)) worker->renewals->remove(acquisition);
    }

private:
    Worker* find(const Nodes& nodes) noexcept {
        const std::lock_guard guard{mutex_};
        const auto found = std::ranges::find(workers_, &nodes, [](const auto& it) { return it->nodes; });
        return found == workers_.end() ? nullptr : found->get();
    }

    /// Returns the worker of these nodes. If there is none, returns a worker that has nothing to do, and if
    /// all are busy, a new one.
    Worker& worker_for_locked(const Nodes& nodes) {
        auto found = std::ranges::find(workers_, &nodes, [](const auto& it) { return it->nodes; });
        if (found == workers_.end())
            found = std::ranges::find_if(workers_, [](const auto& it) { return it->renewals->idle(); });
        if (found == workers_.end()) {
            workers_.push_back(std::make_unique<Worker>(clock_));
            found = workers_.end() - 1;
        }
        (*found)->nodes = &nodes;
        return **found;
    }

    // Constant after construction.
    Clock& clock_;

    std::mutex mutex_{};
    std::vector<std::unique_ptr<Worker>> workers_{};  // guarded by mutex_; no single one is ever removed
};

Watchdog::Watchdog(Clock& clock) : Renewer(clock), impl_(new Impl(clock)) {}

Watchdog::~Watchdog() {
    if (auto* const impl = impl_.load(); impl->process == this_process()) delete impl;
}

void Watchdog::add(detail::Acquisition acquisition) {
    in_this_process().add(std::move(acquisition));
}

void Watchdog::remove(const detail::Acquisition& acquisition) noexcept {
    if (auto* const impl = impl_.load(); impl->process == this_process()) impl->remove(acquisition);
}

/// Returns the state of this process. A child of fork() makes one with threads of its own (rule D10).
Watchdog::Impl& Watchdog::in_this_process() {
    return detail::of_this_process(impl_, [this](Impl*) { return std::make_unique<Impl>(clock()); });
}

}  // namespace redlock
