#include "crew.hpp"

#include "resources.hpp"

#include "support/wait_until.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace redlock::torture {

Crew::Crew(const Terms& terms, const std::filesystem::path& directory,
           std::vector<std::vector<std::string>> node_lists)
    : terms_(terms),
      directory_(directory),
      node_lists_(std::move(node_lists)),
      ledger_(directory / "ledger"),
      workers_(Ledger::workers),
      frozen_since_(Ledger::workers) {
    for (std::size_t worker = 0; worker < size(); ++worker) launch(worker);
}

void Crew::launch(std::size_t worker) {
    std::vector<std::string> words{REDLOCK_TORTURE_WORKER,
                                   directory_ / "ledger",
                                   std::to_string(worker),
                                   std::string{name_of(modes.at(worker % modes.size()))},
                                   std::to_string(terms_.quarantine.count()),
                                   std::to_string(terms_.ttl.count())};
    const auto& nodes = node_lists_.at(worker / modes.size() % node_lists_.size());
    words.insert(words.end(), nodes.begin(), nodes.end());
    workers_[worker].emplace(support::Program{.words = words, .output = directory_ / "output"});
}

void Crew::replace(std::size_t worker) {
    workers_.at(worker)->kill();
    frozen_since_[worker].reset();
    launch(worker);
}

void Crew::freeze(std::size_t worker) {
    if (frozen_since_.at(worker) || !workers_[worker]->running()) return;
    frozen_since_[worker] = now();
    workers_[worker]->freeze();
}

void Crew::thaw(std::size_t worker) {
    if (!frozen_since_.at(worker)) return;
    workers_[worker]->thaw();
    stops_.push_back({worker, *std::exchange(frozen_since_[worker], std::nullopt), now()});
}

void Crew::thaw_all() {
    for (std::size_t worker = 0; worker < size(); ++worker) thaw(worker);
}

std::size_t Crew::stop() {
    ledger_.stop();
    const auto all_ended = [this] {
        return std::ranges::none_of(workers_, [](auto& worker) { return worker->running(); });
    };
    if (!support::wait_until(all_ended, std::chrono::seconds{30}))
        for (auto& worker : workers_) worker->kill();
    return static_cast<std::size_t>(
        std::ranges::count_if(workers_, [](auto& it) { return it->wait() == 0; }));
}

std::string Crew::output() const {
    std::ifstream file{directory_ / "output"};
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace redlock::torture
