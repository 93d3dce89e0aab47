// An event loop of a simulated process. The operations of its locks share one connection to each node. The
// loop runs in a fiber. The other fibers of the process use the loop under a mutex, as the threads of a
// program use one that several threads run.
//
// A fiber that begins an operation blocks until the completion is called. Thus the workloads and the checks
// of `Lock` serve `AsyncLock`, too. At any event, the loop may cancel an operation that is under way, or
// destroy its lock.
#pragma once

#include "checker.hpp"
#include "client.hpp"
#include "process.hpp"
#include "process_network.hpp"
#include "rng.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/async_nodes.hpp>
#include <redlock/event_loop.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::sim {

class SimLoop final : public EventLoop {
public:
    /// How often the loop disturbs its operations.
    struct Disturbances {
        double operation = 0;  ///< the probability that an event cancels an operation or destroys its lock
        double all = 0;        ///< the probability that a turn shuts the AsyncNodes down, and makes a new one
    };
    /// What may happen to an operation that is under way.
    enum class Disturbance : std::uint8_t {
        cancel,
        destroy,
        shut_down,
        move_slots,  ///< Of a Redis Cluster: by one step, several, or to the end.
    };

    /// Starts the fiber of the loop, which ends with the process.
    SimLoop(Client& client, ProcessNetwork& network, Rng rng, Disturbances disturbs);

    AsyncNodes& nodes() noexcept { return *nodes_; }
    void stop_disturbing() noexcept { disturbs_ = {}; }
    Process& process() noexcept { return process_; }

    void watch(int fd, bool reads, bool writes) override;
    void forget(int fd) noexcept override;
    void wake_after(nanoseconds delay) noexcept override;

    // ---- For the other fibers.

    /// Destroys a lock, and makes another one in its place.
    using Destroy = std::function<void()>;
    /// An operation, and the means to disturb it. The loop calls them.
    struct Operation {
        std::function<void(Completion)> begin;
        std::function<void()> cancel;
        const Destroy& destroy;
    };
    /// Begins an operation, and blocks until it has ended. A stop cancels it.
    Result await(Operation operation, const std::stop_token& stop);
    /// Adds or removes a lock that the loop destroys when it is shut down.
    void add(const Destroy& lock) { locks_.push_back(&lock); }
    void remove(const Destroy& lock) { std::erase(locks_, &lock); }
    /// Disturbs the next operation of the calling fiber at a suspension. The operation is at its first
    /// suspension when it has begun, and at another one after each event of the loop until it ends.
    void disturb_next(Disturbance what, std::size_t suspension) {
        step_ = Step{what, suspension, process_.current()};
    }
    /// Returns true if the last disturb_next() has disturbed an operation. Otherwise it will not do so.
    bool has_disturbed() { return !std::exchange(step_, std::nullopt); }
    /// An operation that disturb_next() may have to disturb. `disturb` cancels it, or destroys its object.
    struct Target {
        std::function<bool()> is_under_way;
        std::function<void(bool destroys)> disturb;
    };
    /// Is called in the loop when an operation has begun.
    void has_begun(Target target);
    /// Returns how often the loop was shut down, and has destroyed all its locks.
    std::size_t shutdowns() const noexcept { return shutdowns_; }
    /// Calls a function in the loop.
    template <class Function>
    void call(Function function) {
        const std::lock_guard in_loop{mutex_};
        function();
    }

private:
    struct Call;
    /// The arguments of disturb_next().
    struct Step {
        Disturbance what;
        std::size_t suspensions;  // that remain
        Task* fiber;
        std::optional<Target> target{};
    };
    struct Watched {
        Channel* channel;
        bool reads;
        bool writes;
        bool is_ready() const noexcept {
            return (reads && channel->has_input()) || (writes && channel->can_write());
        }
    };

    void run();
    bool is_due() const;
    void turn();
    void note_suspension();
    void disturb();
    void disturb(Call& call, bool destroys);
    void end(Call& call, Result result);
    void restart();

    Client& client_;
    Process& process_;
    ProcessNetwork& network_;
    Rng rng_;
    Disturbances disturbs_;
    Task* fiber_ = nullptr;
    std::mutex mutex_{};
    std::map<int, Watched> watched_{};
    Clock::time_point wake_at_ = Clock::never();
    std::vector<std::shared_ptr<Call>> calls_{};
    std::vector<const Destroy*> locks_{};
    std::optional<Step> step_{};
    std::size_t shutdowns_ = 0;
    std::optional<AsyncNodes> nodes_{};
};

/// A lock or semaphore of a client, in the front that the client uses. The operations of an Async block the
/// calling fiber. If the loop has destroyed the Async during an operation, a new one is in its place.
template <class Blocking, class Async>
class OfClient : detail::NotCopied {
public:
    template <class... Arguments>
    explicit OfClient(Client& client, const Arguments&... arguments) : loop_(client.loop()) {
        if (!loop_) {
            blocking_.emplace(client.nodes(), arguments..., client.clock(), client.entropy());
            return;
        }
        make_ = [this, arguments...] { return std::make_unique<Async>(loop_->nodes(), arguments...); };
        loop_->call([this] {
            async_ = make_();
            loop_->add(destroy_);
        });
    }
    ~OfClient() {
        if (!loop_) return;
        const Process::IgnoreCrash ignore_crash{loop_->process()};  // it may wait to send its release
        loop_->call([this] {
            loop_->remove(destroy_);
            async_.reset();
        });
    }

    Result acquire(const std::stop_token& stop = {}) {
        if (blocking_) return blocking_->acquire(stop);
        return await([this](Completion done) { async_->acquire(std::move(done)); }, stop);
    }
    Result try_acquire() {
        return perform([](auto& it, auto... done) { return it.try_acquire(std::move(done)...); });
    }
    Result acquire_for(nanoseconds span) {
        return perform([span](auto& it, auto... done) { return it.acquire_for(span, std::move(done)...); });
    }
    Result extend(milliseconds ttl) {
        return perform([ttl](auto& it, auto... done) { return it.extend(ttl, std::move(done)...); });
    }
    Result extend() {
        return perform([](auto& it, auto... done) { return it.extend(std::move(done)...); });
    }
    Result release() {
        return perform([](auto& it, auto... done) { return it.release(std::move(done)...); });
    }
    void unlock() {
        if (blocking_) return blocking_->unlock();
        loop_->call([this] { replace(); });
    }

    bool valid() const noexcept { return blocking_ ? blocking_->valid() : remaining() > 0ns; }
    nanoseconds remaining() const noexcept {
        return query([](const auto& it) { return it.remaining(); });
    }
    std::stop_token lost() const {
        return query([](const auto& it) { return it.lost(); });
    }
    const std::string& resource() const noexcept {
        return blocking_ ? blocking_->resource() : async_->resource();
    }
    Resources resources() const noexcept { return blocking_ ? blocking_->resources() : async_->resources(); }
    std::string_view owner() const noexcept {
        return query([](const auto& it) -> std::string_view { return it.owner(); });
    }
    std::uint64_t fencing_token() const noexcept {
        return query([](const auto& it) { return it.fencing_token(); });
    }

private:
    /// Calls `verb(blocking)`, or `verb(async, done)` in the loop.
    template <class Verb>
    Result perform(Verb verb) {
        if (blocking_) return verb(*blocking_);
        return await([this, verb](Completion done) { verb(*async_, std::move(done)); });
    }
    Result await(std::function<void(Completion)> begin, const std::stop_token& stop = {}) {
        return loop_->await({std::move(begin), [this] { async_->cancel(); }, destroy_}, stop);
    }
    /// During the destruction of an Async, returns an empty value, because its queries must not be called.
    template <class Query>
    auto query(Query query) const {
        if (blocking_) return query(*blocking_);
        const std::lock_guard guard{in_query_};
        return async_ ? query(*async_) : decltype(query(*async_)){};
    }
    /// A fiber may be suspended in a query.
    void replace() {
        const Process::IgnoreCrash ignore_crash{loop_->process()};
        auto next = make_();
        {
            const std::lock_guard guard{in_query_};
            std::swap(async_, next);
        }
    }

    SimLoop* const loop_;
    std::optional<Blocking> blocking_{};
    std::function<std::unique_ptr<Async>()> make_{};
    std::unique_ptr<Async> async_{};
    mutable std::mutex in_query_{};
    const SimLoop::Destroy destroy_ = [this] { replace(); };
};

}  // namespace redlock::sim
