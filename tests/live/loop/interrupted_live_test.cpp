// Acquisitions and runs of leaders of Asio that are cancelled, or whose object is destroyed, or whose context
// ends, after each number of its steps. No key may be left. In other event loops, the simulation disturbs
// each operation at each of its suspensions (the world loops-systematic).
#include "asio_world.hpp"

#include <redlock/asio_leader.hpp>
#include <redlock/asio_semaphore.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace redlock::test::interrupted_live_test {
namespace {

/// An object in a context. The test begins its operation, and runs the context step by step.
template <class Type>
class Stepped {
public:
    template <class... Arguments>
    explicit Stepped(RedisNodes& nodes, Arguments... arguments) {
        object_.emplace(*context_, nodes, std::move(arguments)...);
    }
    void begin(std::function<void()> done) {
        auto bound =
            net::bind_cancellation_slot(signal_.slot(), [done = std::move(done)](const auto&) { done(); });
        if constexpr (std::is_same_v<Type, asio::Leader>)
            object_->async_run([this](AsyncTerm it) { term_.emplace(std::move(it)); }, std::move(bound));
        else
            object_->async_acquire(std::move(bound));
    }
    void step() {
        term_.reset();
        (void)context_->run_one_for(1ms);
        context_->restart();
    }
    void cancel() { signal_.emit(net::cancellation_type::terminal); }
    void run() {
        term_.reset();
        context_->run();
        context_->restart();
    }
    void end() { context_.reset(); }
    /// Destroys the object, and the term of a leader.
    void destroy() {
        term_.reset();
        object_.reset();
    }

private:
    std::unique_ptr<net::io_context> context_ = std::make_unique<net::io_context>();
    net::cancellation_signal signal_{};
    std::optional<AsyncTerm> term_{};
    std::optional<Type> object_{};
};

template <class Type>
class Interrupted : public support::ClusterTest {
protected:
    /// The ttl is so long that only a release removes a key in time.
    Stepped<Type> make() {
        const LockOptions options{.ttl = 10min, .retry = {.attempts = 1000, .delay = 5ms}};
        if constexpr (std::is_same_v<Type, asio::Leader>)
            return Stepped<Type>{nodes, "orders:42",
                                 LeaderOptions{.ttl = 10min, .margin = 3s, .retry = {.delay = 20ms}}};
        else if constexpr (std::is_same_v<Type, asio::Semaphore>)
            return Stepped<Type>{nodes, "jobs", std::size_t{2}, options};
        else
            return Stepped<Type>{nodes, "orders:42", options};
    }
    /// Calls `interrupt` in a new loop after each number of steps. If `contended`, another client holds the
    /// resource, or one of two slots.
    template <class Interrupt>
    void at_each_step(Interrupt interrupt) {
        for (const bool contended : {false, true}) {
            std::optional<Lock> other;
            if (contended) {
                other.emplace(nodes, resource(), LockOptions{.ttl = 10min});
                ASSERT_TRUE(other->acquire());
            }
            for (int steps = 0; steps < 24; ++steps) {
                SCOPED_TRACE((contended ? "contended, after " : "after ") + std::to_string(steps));
                bool ended = false;
                auto loop = make();
                loop.begin([&] {
                    EXPECT_FALSE(ended);
                    ended = true;
                });
                for (int i = 0; i < steps && !ended; ++i) loop.step();
                interrupt(loop, ended);
                loop.destroy();
                EXPECT_TRUE(support::wait_until([&] { return all_keys() == (contended ? 5U : 0U); }));
            }
        }
    }
    static std::string resource() {
        return std::is_same_v<Type, asio::Semaphore> ? "{jobs}:slot:0" : "orders:42";
    }
    std::size_t all_keys() { return keys(resource()) + keys("{jobs}:slot:1"); }
};
using Types = testing::Types<asio::Lock, asio::Semaphore, asio::Leader>;
TYPED_TEST_SUITE(Interrupted, Types);

TYPED_TEST(Interrupted, CallsItsCompletionOnceIfItIsCancelled) {
    this->at_each_step([](auto& loop, const bool& ended) {
        loop.cancel();
        loop.run();
        EXPECT_TRUE(ended);
        loop.destroy();
        loop.run();
    });
}

TYPED_TEST(Interrupted, CallsItsCompletionOnceIfItsObjectIsDestroyed) {
    this->at_each_step([](auto& loop, const bool& ended) {
        loop.destroy();
        loop.run();
        EXPECT_TRUE(ended);
    });
}

TYPED_TEST(Interrupted, CallsNoCompletionIfItsLoopEnds) {
    this->at_each_step([](auto& loop, const bool& ended) {
        const bool ended_before = ended;
        loop.end();
        loop.destroy();
        EXPECT_EQ(ended, ended_before);
    });
}

}  // namespace
}  // namespace redlock::test::interrupted_live_test
