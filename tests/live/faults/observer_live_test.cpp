// An observer hears of each round and of each connection's birth, death and backing off; it
// may use the library itself, since nothing is locked while it is called.
#include "fault_world.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace redlock::test {
namespace {

/// What an observer was told, kept for the test to read.
class Diary : public Observer {
public:
    struct Entry {
        std::size_t kind;  ///< Command::verb
        std::string resource;
        std::vector<Vote> votes;
        std::vector<std::error_code> causes;
        std::chrono::nanoseconds took;
    };
    struct Trouble {
        std::string node;
        std::error_code cause;
        std::string detail;
        std::chrono::nanoseconds pause{};
    };

    void round_ended(const Command& command, const Tally& tally,
                     std::chrono::nanoseconds took) noexcept override {
        const auto resources = command.resources;
        Entry entry{static_cast<std::size_t>(command.verb), resources.front(), {}, {}, took};
        for (const auto& report : tally.reports()) {
            entry.votes.push_back(report.vote);
            entry.causes.push_back(report.cause);
        }
        const std::lock_guard guard{mutex_};
        rounds_.push_back(std::move(entry));
    }
    void connecting(std::string_view node) noexcept override {
        const std::lock_guard guard{mutex_};
        ++born_[std::string{node}];
    }
    void disconnected(std::string_view node, std::error_code cause,
                      std::string_view detail) noexcept override {
        const std::lock_guard guard{mutex_};
        deaths_.push_back({std::string{node}, cause, std::string{detail}});
    }
    void backing_off(std::string_view node, std::error_code cause, std::string_view detail,
                     std::chrono::nanoseconds pause) noexcept override {
        const std::lock_guard guard{mutex_};
        pauses_.push_back({std::string{node}, cause, std::string{detail}, pause});
    }

    std::vector<Entry> rounds() const { return copy(rounds_); }
    std::vector<Trouble> deaths() const { return copy(deaths_); }
    std::vector<Trouble> pauses() const { return copy(pauses_); }
    /// Connections of that node that were born and have not died.
    std::size_t alive(const std::string& node) const {
        const std::lock_guard guard{mutex_};
        const auto born = born_.find(node);
        const auto died = std::ranges::count(deaths_, node, &Trouble::node);
        return born == born_.end() ? 0 : born->second - static_cast<std::size_t>(died);
    }
    void turn_page() {
        const std::lock_guard guard{mutex_};
        rounds_.clear();
        pauses_.clear();
    }

private:
    template <class Part>
    Part copy(const Part& part) const {
        const std::lock_guard guard{mutex_};
        return part;
    }

    mutable std::mutex mutex_{};
    std::vector<Entry> rounds_{};
    std::map<std::string, std::size_t> born_{};
    std::vector<Trouble> deaths_{};
    std::vector<Trouble> pauses_{};
};

constexpr std::size_t set = 0;
constexpr std::size_t extension = 1;
constexpr std::size_t release = 2;

std::vector<std::size_t> kinds(const Diary& diary) {
    std::vector<std::size_t> result;
    for (const auto& entry : diary.rounds()) result.push_back(entry.kind);
    return result;
}

class AnObserver : public InEachRound {
protected:
    /// One entry tells what the result does.
    static void expect_same(const Diary::Entry& entry, const Result& result) {
        for (std::size_t node = 0; node < result.nodes().size(); ++node) {
            EXPECT_EQ(entry.votes[node], result.nodes()[node].vote);
            EXPECT_EQ(entry.causes[node], result.nodes()[node].cause);
        }
    }

    Diary diary{};
    FaultWorld world{3, {.node_timeout = 300ms, .round = GetParam(), .observer = &diary}};
};
INSTANTIATE_TEST_SUITE_P(Of, AnObserver, testing::Values(Round::sequential, Round::all_at_once),
                         name_of_round);

TEST_P(AnObserver, HearsOfEachRoundWhatTheResultSays) {
    world.warm_up();
    diary.turn_page();
    auto lock = world.lock();
    std::optional<Result> acquired;
    const auto taken = time_taken([&] { acquired = lock.acquire(); });
    const auto extended = lock.extend();
    const auto released = lock.release();
    ASSERT_THAT(kinds(diary), ElementsAre(set, extension, release));
    const auto rounds = diary.rounds();
    expect_same(rounds[0], *acquired);
    expect_same(rounds[1], extended);
    expect_same(rounds[2], released);
    for (const auto& round : rounds) {
        EXPECT_EQ(round.resource, the_resource);
        EXPECT_GT(round.took, 0ns);
    }
    EXPECT_LE(rounds[0].took, taken);
}

TEST_P(AnObserver, HearsOfEachAttemptAndOfItsCleaningUp) {
    for (auto& server : world) ASSERT_EQ(occupy(server), "OK");
    auto lock = world.lock({.retry = {.attempts = 3, .delay = 1ms}});
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(kinds(diary), ElementsAre(set, release, set, release, set, release));
}

TEST_P(AnObserver, HearsWhyANodeDidNotVote) {
    world.warm_up();
    world.link(0).black_hole();
    auto lock = world.lock();
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    ASSERT_THAT(diary.pauses(), SizeIs(1));
    const auto pause = diary.pauses()[0];
    EXPECT_EQ(pause.node, world.link(0).name());
    EXPECT_EQ(pause.cause, Errc::timed_out);
    EXPECT_GT(pause.pause, 0ms);
    EXPECT_LE(pause.pause, 1s);
}

TEST_P(AnObserver, HearsWhyAConnectionEnds) {
    world.warm_up();
    auto lock = world.lock();
    world.link(1).cut_after(2);
    EXPECT_TRUE(wait_until([&] {
        (void)lock.acquire();
        (void)lock.release();
        return !diary.deaths().empty();
    }));
    for (const auto& death : diary.deaths()) {
        EXPECT_EQ(death.node, world.link(1).name());
        EXPECT_EQ(death.cause, Errc::connection_failed);
        EXPECT_THAT(death.detail, HasSubstr("closed by the server"));
    }
}

// Births less deaths are the connections there are, through all that can befall them.
TEST_P(AnObserver, CanCountTheConnectionsThereAre) {
    const std::vector<std::function<void(TcpProxy&)>> strikes{
        [](auto& link) { link.reset(); },      [](auto& link) { link.cut_after(2); },
        [](auto& link) { link.cut_after(8); }, [](auto& link) { link.babble("+NO\r\n"); },
        [](auto& link) { link.refuse(); },     [](auto& link) { link.duplicate_replies(); },
        [](auto& link) { link.hold(); }};
    auto lock = world.lock(no_retry());
    for (const auto& strike : strikes) {
        world.warm_up();
        strike(world.link(1));
        for (int i = 0; i < 5; ++i) {
            (void)lock.acquire();
            (void)lock.release();
        }
        world.link(1).heal();
    }
    world.warm_up();
    for (auto& link : world.links())
        EXPECT_TRUE(wait_until([&] { return link.traffic().open == diary.alive(link.name()); }))
            << link.traffic().open << " open, " << diary.alive(link.name()) << " told";
}

/// Locks something else on the same nodes from within each call, but for those it causes itself.
class Meddler : public Observer {
public:
    void round_ended(const Command&, const Tally&, std::chrono::nanoseconds) noexcept override { meddle(); }
    void connecting(std::string_view) noexcept override { meddle(); }
    void disconnected(std::string_view, std::error_code, std::string_view) noexcept override { meddle(); }
    void backing_off(std::string_view, std::error_code, std::string_view,
                     std::chrono::nanoseconds) noexcept override {
        meddle();
    }

    void let_loose(RedisNodes& nodes) { nodes_ = &nodes; }
    int successes() const noexcept { return successes_; }

private:
    void meddle() {
        if (!nodes_ || busy_) return;
        busy_ = true;
        Lock lock{*nodes_, "meddling", no_retry()};
        successes_ += lock.acquire() && lock.release() ? 1 : 0;
        busy_ = false;
    }

    RedisNodes* nodes_ = nullptr;
    bool busy_ = false;
    int successes_ = 0;
};

TEST_P(AnObserver, MayLockOnTheSameNodesFromWithinACall) {
    Meddler meddler;
    FaultWorld theirs{3, {.node_timeout = 2s, .round = GetParam(), .observer = &meddler}};
    meddler.let_loose(theirs.nodes);
    auto lock = theirs.lock();
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto at_first = meddler.successes();
    EXPECT_GE(at_first, 2);  // a birth and the round
    theirs.warm_up();
    theirs.link(0).reset();
    theirs.link(0).refuse();
    for (int i = 0; i < 3; ++i) EXPECT_THAT(theirs.lock("another").acquire(), Succeeds());
    EXPECT_GE(meddler.successes(), at_first + 8);  // six rounds, a death, a pause
}

/// Does not come back from its first round until it is told.
class Sleeper : public Observer {
public:
    void round_ended(const Command&, const Tally&, std::chrono::nanoseconds) noexcept override {
        if (slept_.exchange(true)) return;
        asleep.count_down();
        wake_up.wait();
    }

    std::latch asleep{1};
    std::latch wake_up{1};

private:
    std::atomic<bool> slept_ = false;
};

TEST_P(AnObserver, ThatIsSlowHoldsUpNobodyElse) {
    Sleeper sleeper;
    FaultWorld theirs{3, {.node_timeout = 2s, .round = GetParam(), .observer = &sleeper}};
    std::jthread first{[&] { (void)theirs.lock("first").acquire(); }};
    sleeper.asleep.wait();
    auto lock = theirs.lock();
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    sleeper.wake_up.count_down();
}

}  // namespace
}  // namespace redlock::test
