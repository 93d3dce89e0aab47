#include "worker_pool.hpp"

#include "resources.hpp"

#include "support/process_files.hpp"
#include "support/wait_until.hpp"

#include <algorithm>
#include <utility>

namespace redlock::torture {

WorkerPool::WorkerPool(const LockSettings& settings, const std::filesystem::path& directory,
                       std::vector<std::vector<std::string>> node_lists)
    : settings_(settings),
      directory_(directory),
      node_lists_(std::move(node_lists)),
      log_(directory / "log"),
      workers_(HoldLog::processes),
      frozen_since_(HoldLog::processes) {
    for (std::size_t worker = 0; worker < size(); ++worker) launch(worker);
}

void WorkerPool::launch(std::size_t worker) {
    std::vector<std::string> words{REDLOCK_TORTURE_WORKER,
                                   directory_ / "log",
                                   std::to_string(worker),
                                   std::string{name_of(modes.at(worker % modes.size()))},
                                   std::to_string(settings_.quarantine.count()),
                                   std::to_string(settings_.ttl.count()),
                                   std::to_string(settings_.node_timeout.count())};
    const auto& nodes = node_lists_.at(worker / modes.size() % node_lists_.size());
    words.insert(words.end(), nodes.begin(), nodes.end());
    workers_[worker].emplace(support::Program{.words = words, .output = directory_ / "output"});
}

void WorkerPool::replace(std::size_t worker) {
    workers_.at(worker)->kill();
    frozen_since_[worker].reset();
    launch(worker);
}

void WorkerPool::freeze(std::size_t worker) {
    if (frozen_since_.at(worker) || !workers_[worker]->running()) return;
    frozen_since_[worker] = now();
    workers_[worker]->freeze();
}

void WorkerPool::thaw(std::size_t worker) {
    if (!frozen_since_.at(worker)) return;
    workers_[worker]->thaw();
    suspensions_.push_back({worker, *std::exchange(frozen_since_[worker], std::nullopt), now()});
}

void WorkerPool::thaw_all() {
    for (std::size_t worker = 0; worker < size(); ++worker) thaw(worker);
}

std::size_t WorkerPool::stop() {
    log_.stop();
    const auto all_ended = [this] {
        return std::ranges::none_of(workers_, [](auto& worker) { return worker->running(); });
    };
    if (!support::wait_until(all_ended, std::chrono::seconds{30}))
        for (auto& worker : workers_) worker->kill();
    return static_cast<std::size_t>(
        std::ranges::count_if(workers_, [](auto& it) { return it->wait() == 0; }));
}

std::vector<Suspension> WorkerPool::suspensions() {
    auto all = log_.suspensions();
    all.insert(all.end(), suspensions_.begin(), suspensions_.end());
    return all;
}

std::string WorkerPool::output() const {
    return support::content(directory_ / "output");
}

}  // namespace redlock::torture
