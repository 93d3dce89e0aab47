// An entry of the cache is too old, and a hundred servers see it at once. How do I let one of them refresh
// it?
//
// The one that gets the lock looks again (another may just have refreshed it), and fetches. The others do not
// wait: they serve what is old. Where nothing old is to be had they wait for the lock, and look again.
//
// The lock saves work; where it fails, an entry is fetched twice. A slow refresh must not overwrite a later
// one either: an entry carries the fencing token of the one that wrote it.
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

struct Entry {
    std::string text;
    bool too_old = false;
    std::uint64_t written_by = 0;  // the fencing token
};

/// Stands for the cache that all servers share.
class Cache {
public:
    std::optional<Entry> get() {
        const std::lock_guard guard{mutex_};
        return entry_;
    }
    void put(Entry entry) {
        const std::lock_guard guard{mutex_};
        if (!entry_ || entry.written_by >= entry_->written_by) entry_ = std::move(entry);
    }

private:
    std::mutex mutex_;
    std::optional<Entry> entry_;
};

std::atomic<int> fetched = 0;

std::string fetch_prices() {  // slowly
    std::this_thread::sleep_for(200ms);
    return "prices " + std::to_string(++fetched);
}

std::string prices(redlock::Nodes& nodes, Cache& cache) {
    const auto cached = cache.get();
    if (cached && !cached->too_old) return cached->text;

    redlock::Lock lock{nodes, "cache:prices:refresh", {.ttl = 5s, .retry = {.delay = 50ms}, .fencing = true}};
    const auto acquired = cached ? lock.try_acquire() : lock.acquire_for(5s);
    if (!acquired && cached) return cached->text;

    if (const auto now = cache.get(); now && !now->too_old) return now->text;
    Entry fresh{.text = fetch_prices(), .written_by = lock.fencing_token()};  // 0 if there is no quorum
    cache.put(fresh);
    return fresh.text;
}

/// So many servers ask at once.
void ask(redlock::Nodes& nodes, Cache& cache, int servers) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < servers; ++i) threads.emplace_back([&] { (void)prices(nodes, cache); });
}

int main(int argc, char** argv) try {
    redlock::RedisNodes nodes{node_list(argc, argv)};
    Cache cache;
    ask(nodes, cache, 10);  // there is nothing yet: one fetches, nine wait for it
    auto entry = *cache.get();
    entry.too_old = true;
    cache.put(entry);
    ask(nodes, cache, 10);  // one fetches, the others serve what is old, or what is new already
    std::cout << "asked 20 times, fetched " << fetched << " times\n";
    return fetched == 2 ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
