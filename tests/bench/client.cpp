#include "client.hpp"

#include <algorithm>
#include <thread>

namespace redlock::bench {

Batch LocalClient::run(const Work& work) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t plenty = 100'000;  // so that nothing is allocated between two ops
    Batch batch;
    batch.microseconds.reserve(std::min(work.ops, plenty));
    const bool arrivals = work.interval.count() > 0;
    auto start = Clock::now() + work.first;
    const auto end = start - work.first + work.span;
    for (std::size_t op = 0; op < work.ops && start < end; ++op) {
        if (arrivals) std::this_thread::sleep_until(start);
        const bool acquired = acquire();
        if (acquired) release();
        const auto now = Clock::now();
        if (acquired)
            batch.microseconds.push_back(std::chrono::duration<double, std::micro>(now - start).count());
        else
            ++batch.failed;
        start = arrivals ? start + work.interval : now;
    }
    return batch;
}

}  // namespace redlock::bench
