// How do I test my own code that takes a lock, without any server?
//
// Let your code take a redlock::Nodes&, and pass it a fake: three nodes that grant, refuse or do not reply,
// as the test demands.
#include <redlock/redlock.hpp>

#include <exception>
#include <iostream>
#include <string>

class FakeNodes : public redlock::Nodes {
public:
    enum class Mood { grant, refuse, silent };

    explicit FakeNodes(Mood mood) : Nodes({"a", "b", "c"}), mood_(mood) {}

    void ask(std::span<const redlock::Request> requests, const redlock::RoundLimits&,
             std::span<redlock::Tally> tallies) override {
        ++rounds;
        for (std::size_t i = 0; i < requests.size(); ++i)
            for (std::size_t node = 0; node < size(); ++node)
                if (requests[i].to[node]) answer(tallies[i], node);
    }

    int rounds = 0;

private:
    void answer(redlock::Tally& tally, std::size_t node) const {
        if (mood_ == Mood::grant) tally.grant(node);
        if (mood_ == Mood::refuse) tally.refuse(node);
        if (mood_ == Mood::silent) tally.mark_unknown(node, redlock::Errc::timed_out);
    }

    Mood mood_;
};

/// The code under test.
std::string nightly_job(redlock::Nodes& nodes) {
    redlock::Lock lock{nodes, "job:nightly", {.retry = {.attempts = 1}}};
    const auto acquired = lock.acquire();
    if (acquired) return "done";
    return acquired.error() == redlock::Errc::held_by_other ? "somebody else does it" : "put off";
}

/// Returns 0 if the job has the expected outcome and uses two rounds: one to acquire, and one to release.
int check(FakeNodes::Mood mood, const std::string& expected) {
    FakeNodes nodes{mood};
    const auto outcome = nightly_job(nodes);
    if (outcome == expected && nodes.rounds == 2) {
        std::cout << "as expected: " << outcome << '\n';
        return 0;
    }
    std::cerr << "expected '" << expected << "', not '" << outcome << "' in " << nodes.rounds << " rounds\n";
    return 1;
}

int main() try {
    using Mood = FakeNodes::Mood;
    return check(Mood::grant, "done") + check(Mood::refuse, "somebody else does it") +
           check(Mood::silent, "put off");
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
