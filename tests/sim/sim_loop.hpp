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
#include <variant>
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

/// An AsyncLock or AsyncSemaphore whose operations block the calling fiber. If the loop has destroyed it
/// during an operation, a new one is in its place.
template <class Async>
class InLoop : detail::NotCopied {
public:
    template <class... Arguments>
    explicit InLoop(SimLoop& loop, const Arguments&... arguments)
        : loop_(loop),
          make_([&loop, arguments...] { return std::make_unique<Async>(loop.nodes(), arguments...); }) {
        loop_.call([this] {
            it_ = make_();
            loop_.add(destroy_);
        });
    }
    ~InLoop() {
        const Process::IgnoreCrash ignore_crash{loop_.process()};  // it may wait to send its release
        loop_.call([this] {
            loop_.remove(destroy_);
            it_.reset();
        });
    }

    Result acquire(const std::stop_token& stop = {}) {
        return await([this](Completion done) { it_->acquire(std::move(done)); }, stop);
    }
    Result try_acquire() {
        return await([this](Completion done) { it_->try_acquire(std::move(done)); });
    }
    Result acquire_for(nanoseconds span) {
        return await([this, span](Completion done) { it_->acquire_for(span, std::move(done)); });
    }
    Result extend(milliseconds ttl) {
        return await([this, ttl](Completion done) { it_->extend(ttl, std::move(done)); });
    }
    Result extend() {
        return await([this](Completion done) { it_->extend(std::move(done)); });
    }
    Result release() {
        return await([this](Completion done) { it_->release(std::move(done)); });
    }
    void unlock() {
        loop_.call([this] { replace(); });
    }

    bool valid() const noexcept { return remaining() > 0ns; }
    nanoseconds remaining() const noexcept {
        const std::lock_guard guard{in_query_};
        return it_ ? it_->remaining() : 0ns;
    }
    std::stop_token lost() const {
        const std::lock_guard guard{in_query_};
        return it_->lost();
    }
    const std::string& resource() const noexcept { return it_->resource(); }
    Resources resources() const noexcept { return it_->resources(); }
    std::string_view owner() const noexcept {
        const std::lock_guard guard{in_query_};
        return it_ ? it_->owner() : std::string_view{};
    }
    std::uint64_t fencing_token() const noexcept {
        const std::lock_guard guard{in_query_};
        return it_ ? it_->fencing_token() : 0;
    }

private:
    Result await(std::function<void(Completion)> begin, const std::stop_token& stop = {}) {
        return loop_.await({std::move(begin), [this] { it_->cancel(); }, destroy_}, stop);
    }
    /// The queries must not be called during the destruction. A fiber may be suspended in a query.
    void replace() {
        const Process::IgnoreCrash ignore_crash{loop_.process()};
        auto next = make_();
        {
            const std::lock_guard guard{in_query_};
            std::swap(it_, next);
        }
    }

    SimLoop& loop_;
    std::function<std::unique_ptr<Async>()> make_;
    std::unique_ptr<Async> it_{};
    mutable std::mutex in_query_{};
    const SimLoop::Destroy destroy_ = [this] { replace(); };
};

/// A lock or semaphore of a client, in the front that the client uses.
template <class Blocking, class Async>
class OfClient {
public:
    template <class... Arguments>
    explicit OfClient(Client& client, const Arguments&... arguments)
        : it_(client.loop() ? Front{std::in_place_type<InLoop<Async>>, *client.loop(), arguments...}
                            : Front{std::in_place_type<Blocking>, client.nodes(), arguments...,
                                    client.clock(), client.entropy()}) {}

    Result acquire(const std::stop_token& stop = {}) {
        return call([&](auto& it) { return it.acquire(stop); });
    }
    Result try_acquire() {
        return call([](auto& it) { return it.try_acquire(); });
    }
    Result acquire_for(nanoseconds span) {
        return call([span](auto& it) { return it.acquire_for(span); });
    }
    Result extend() {
        return call([](auto& it) { return it.extend(); });
    }
    Result extend(milliseconds ttl) {
        return call([ttl](auto& it) { return it.extend(ttl); });
    }
    Result release() {
        return call([](auto& it) { return it.release(); });
    }
    void unlock() {
        call([](auto& it) { it.unlock(); });
    }

    bool valid() const noexcept {
        return call([](const auto& it) { return it.valid(); });
    }
    nanoseconds remaining() const noexcept {
        return call([](const auto& it) { return it.remaining(); });
    }
    std::stop_token lost() const {
        return call([](const auto& it) { return it.lost(); });
    }
    const std::string& resource() const noexcept {
        return call([](const auto& it) -> const std::string& { return it.resource(); });
    }
    Resources resources() const noexcept {
        return call([](const auto& it) { return it.resources(); });
    }
    std::string_view owner() const noexcept {
        return call([](const auto& it) { return it.owner(); });
    }
    std::uint64_t fencing_token() const noexcept {
        return call([](const auto& it) { return it.fencing_token(); });
    }

private:
    using Front = std::variant<Blocking, InLoop<Async>>;

    template <class Function>
    decltype(auto) call(Function function) {
        return std::visit(function, it_);
    }
    template <class Function>
    decltype(auto) call(Function function) const {
        return std::visit(function, it_);
    }

    Front it_;
};

}  // namespace redlock::sim
