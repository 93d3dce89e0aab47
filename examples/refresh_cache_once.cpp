// A cache entry is stale, and a hundred servers notice that at the same time. How do I let only one of them
// refresh it?
//
// The server that acquires the lock reads the cache again, because another one may just have refreshed the
// entry. If the entry is still stale, the server fetches it. The other servers do not wait: they serve the
// stale entry. If the cache is empty, they wait for the lock and then read the cache again.
//
// Here the lock only saves work: if it fails, an entry is fetched twice. In addition, a slow refresh must not
// overwrite a later one. Therefore each entry has the fencing token of the server that wrote it.
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

/// Stands for the cache that all servers share. It ignores an entry with a smaller fencing token than the
/// current one.
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

std::string fetch_prices() {  // takes 200 ms
    std::this_thread::sleep_for(200ms);
    return "prices " + std::to_string(++fetched);
}

std::string prices(redlock::Nodes& nodes, Cache& cache) {
    const auto cached = cache.get();
    if (cached && !cached->too_old) return cached->text;

    redlock::Lock lock{nodes, "cache:prices:refresh", {.ttl = 5s, .retry = {.delay = 50ms}, .fencing = true}};
    const auto acquired = cached ? lock.try_acquire() : lock.acquire_for(5s);
    if (!acquired && cached) return cached->text;
    if (!acquired) std::cerr << "fetching without the lock: " << acquired.message() << '\n';

    if (const auto now = cache.get(); now && !now->too_old) return now->text;
    Entry fresh{.text = fetch_prices(), .written_by = lock.fencing_token()};  // 0 without a quorum
    cache.put(fresh);
    return fresh.text;
}

/// Lets this number of servers ask for the prices at the same time.
void ask(redlock::Nodes& nodes, Cache& cache, int servers) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < servers; ++i) threads.emplace_back([&] { (void)prices(nodes, cache); });
}

int main(int argc, char** argv) try {
    redlock::RedisNodes nodes{node_list(argc, argv)};
    Cache cache;
    ask(nodes, cache, 10);  // the cache is empty: one server fetches, nine wait
    auto entry = *cache.get();
    entry.too_old = true;
    cache.put(entry);
    ask(nodes, cache, 10);  // one server fetches; the others serve the stale or the new entry
    std::cout << "asked 20 times, fetched " << fetched << " times\n";
    return fetched == 2 ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
