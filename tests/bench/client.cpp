#include "client.hpp"

#include <algorithm>

namespace redlock::bench {

Batch LocalClient::run(const Work& work) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t plenty = 100'000;  // so that nothing is allocated between two ops
    Batch batch;
    batch.microseconds.reserve(std::min(work.ops, plenty));
    auto now = Clock::now();
    const auto end = now + work.span;
    for (std::size_t op = 0; op < work.ops && now < end; ++op) {
        const auto start = now;
        const bool acquired = acquire();
        if (acquired) release();
        now = Clock::now();
        if (acquired)
            batch.microseconds.push_back(std::chrono::duration<double, std::micro>(now - start).count());
        else
            ++batch.failed;
    }
    return batch;
}

}  // namespace redlock::bench
