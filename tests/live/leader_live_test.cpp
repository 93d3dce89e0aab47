// Three processes, one of which leads. One is killed, and one is stopped and continues. According to their
// own records no two lead at once, and there is always another leader.
#include "forked_child.hpp"
#include "live_world.hpp"

#include <redlock/leader.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace redlock::test::leader_live_test {
namespace {

/// What a leader has recorded about one valid term. Instants are those of the boot clock, which all processes
/// share.
struct TermRecord {
    std::atomic<int> process{-1};
    std::atomic<std::uint64_t> token{0};
    std::atomic<Clock::rep> first{0};
    std::atomic<Clock::rep> last{0};
    std::atomic<bool> ended{false};  // its work has returned
};

/// The records of all processes, in memory that outlives them.
class TermLog {
public:
    TermRecord& begin(int process, std::uint64_t token) {
        auto& record = records_.at(count_.fetch_add(1));
        record.token = token;
        record.process = process;
        return record;
    }

    std::vector<const TermRecord*> by_token() const {
        std::vector<const TermRecord*> result;
        for (const auto& record : records_)
            if (record.last > 0) result.push_back(&record);
        std::ranges::sort(result, {}, [](const TermRecord* it) { return it->token.load(); });
        return result;
    }

    /// Returns a term that is active now, of another process than `others`.
    const TermRecord* next_leader(std::vector<int> others = {}) const {
        const auto since = boot_clock().now().time_since_epoch().count();
        const TermRecord* leader = nullptr;
        EXPECT_TRUE(wait_until([&] {
            const auto all = by_token();
            const auto found = std::ranges::find_if(all, [&](const TermRecord* it) {
                return it->last > since && !std::ranges::count(others, it->process.load());
            });
            leader = found == all.end() ? nullptr : *found;
            return leader != nullptr;
        }));
        return leader;
    }

private:
    std::array<TermRecord, 1000> records_;
    std::atomic<std::size_t> count_{0};
};

struct Unmap {
    void operator()(TermLog* log) const { ::munmap(log, sizeof *log); }
};

std::unique_ptr<TermLog, Unmap> shared_log() {
    void* const memory =
        ::mmap(nullptr, sizeof(TermLog), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    return std::unique_ptr<TermLog, Unmap>{new (memory) TermLog};
}

/// Runs one of the processes until it is killed. Its work ignores the stop request until the very end of its
/// term. It records an instant if the term is still valid afterwards, so that the term was valid at that
/// instant.
void campaign(int process, const std::vector<std::string>& uris, TermLog& log) {
    RedisNodes nodes{uris, {.node_timeout = 1s}};
    Leader leader{nodes, the_resource, {.ttl = 2s, .margin = 500ms, .retry = {.delay = 100ms}}};
    leader.run(
        [&](const Term& term) {
            auto& record = log.begin(process, term.fencing_token());
            while (!term.lost().stop_requested() || term.remaining() > 0s) {
                const auto now = boot_clock().now().time_since_epoch().count();
                if (term.remaining() > 0s) {
                    if (record.first == 0) record.first = now;
                    record.last = now;
                }
                std::this_thread::sleep_for(2ms);
            }
            record.ended = true;
        },
        {});
}

TEST(LeaderProcesses, LeadOneAfterAnotherEvenIfSomeAreKilled) {
    LiveWorld world{3};
    const auto log = shared_log();
    std::deque<ForkedChild> processes;
    for (int process = 0; process < 3; ++process)
        processes.emplace_back([&, process](auto) { campaign(process, world.uris(), *log); });
    const auto process = [&](const TermRecord* record) -> auto& {
        return processes.at(static_cast<std::size_t>(record->process));
    };

    const auto* const killed = log->next_leader();
    ASSERT_TRUE(killed);
    process(killed).kill();

    const auto* const stopped = log->next_leader({killed->process});
    ASSERT_TRUE(stopped);
    process(stopped).freeze();

    const auto* const last = log->next_leader({killed->process, stopped->process});
    ASSERT_TRUE(last);
    process(stopped).thaw();
    EXPECT_TRUE(wait_until([&] { return stopped->ended.load(); })) << "it goes on, and its term is over";
    ASSERT_TRUE(log->next_leader());
    process(last).kill();
    ASSERT_TRUE(log->next_leader({last->process})) << "the one that was stopped";
    processes.clear();

    const auto terms = log->by_token();
    EXPECT_GE(terms.size(), 4U);
    for (std::size_t i = 1; i < terms.size(); ++i) {
        EXPECT_LT(terms[i - 1]->token, terms[i]->token);
        EXPECT_LT(terms[i - 1]->last, terms[i]->first) << "two leaders at once";
    }
}

}  // namespace
}  // namespace redlock::test::leader_live_test
