#include "team.hpp"

#include "support/wait_until.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace redlock::exclusion {

Team::Team(const Task& task, const std::vector<std::vector<std::string>>& nodes)
    : task_(task), nodes_(nodes), board_(directory_ / "board") {
    if (nodes.size() > Board::most_workers) throw std::invalid_argument("Team: too many workers");
    workers_.resize(nodes.size());
    for (std::size_t worker = 0; worker < size(); ++worker) launch(worker);
    const auto all_ready = [this] { return board_.ready() == static_cast<std::int32_t>(size()); };
    if (!support::wait_until(all_ready, std::chrono::seconds{30}))
        throw std::runtime_error("the workers do not start:\n" + output());
}

void Team::launch(std::size_t worker) {
    std::vector<std::string> words{REDLOCK_EXCLUSION_WORKER,
                                   directory_ / "board",
                                   std::to_string(worker),
                                   task_.round == Round::sequential ? "sequential" : "all_at_once",
                                   std::to_string(task_.ttl.count()),
                                   std::to_string(task_.retry_delay.count()),
                                   std::to_string(task_.holds),
                                   task_.overstays ? "overstays" : "leaves"};
    words.insert(words.end(), nodes_[worker].begin(), nodes_[worker].end());
    workers_[worker].emplace(support::Program{.words = words, .output = directory_ / "output"});
}

void Team::replace(std::size_t worker) {
    workers_.at(worker)->kill();
    launch(worker);
}

std::size_t Team::stop(std::chrono::nanoseconds patience) {
    board_.stop();
    return wait(patience);
}

std::size_t Team::wait(std::chrono::nanoseconds patience) {
    const auto all_ended = [this] {
        bool ended = true;
        for (auto& worker : workers_) ended = ended && !worker->running();
        return ended;
    };
    if (!support::wait_until(all_ended, patience))
        for (auto& worker : workers_) worker->kill();
    std::size_t well = 0;
    for (auto& worker : workers_) well += worker->wait() == 0 ? 1U : 0U;
    return well;
}

std::int64_t Team::holds() {
    std::int64_t result = 0;
    for (std::size_t worker = 0; worker < size(); ++worker) result += diary(worker).holds();
    return result;
}

std::int64_t Team::attempts() {
    std::int64_t result = 0;
    for (std::size_t worker = 0; worker < size(); ++worker) result += diary(worker).attempts();
    return result;
}

std::vector<Hold> Team::history() {
    std::vector<Hold> result;
    for (std::size_t worker = 0; worker < size(); ++worker) diary(worker).read_into(result, worker);
    return result;
}

std::string Team::output() const {
    std::ifstream file{directory_ / "output"};
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace redlock::exclusion
