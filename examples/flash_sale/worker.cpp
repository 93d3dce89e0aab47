#include "worker.hpp"

#include <chrono>
#include <iostream>
#include <thread>

namespace flash_sale {

using namespace std::chrono_literals;

Receipt Worker::sell_unlocked() {
    while (sell_one()) pause();
    return receipt_;
}

Receipt Worker::sell_locked(redlock::Nodes& nodes) {
    // The pause between attempts suits the 10 ms that the others hold it.
    redlock::Lock lock{nodes, "flash-sale:stock", {.ttl = 5s, .retry = {.delay = 20ms}}};
    while (sell_one(lock)) pause();
    return receipt_;
}

/// False when there was nothing left to sell.
bool Worker::sell_one() {
    const int stock = store_.stock();
    if (stock <= 0) return false;
    pause();  // the payment; meanwhile the others sell, too
    store_.set_stock(stock - 1);
    ++receipt_.sold;
    return true;
}

bool Worker::sell_one(redlock::Lock& lock) {
    if (!acquire(lock)) return receipt_.gave_up < 3;
    const int stock = store_.stock();
    if (stock > 0) pause();
    if (stock > 0 && lock.valid()) {
        store_.set_stock(stock - 1);
        ++receipt_.sold;
    } else if (stock > 0) {
        ++receipt_.lost;  // another worker may be selling this item now
    }
    (void)lock.release();  // should too few nodes answer, the rest goes by itself after the ttl
    return stock > 0;
}

bool Worker::acquire(redlock::Lock& lock) {
    const auto start = std::chrono::steady_clock::now();
    const auto acquired = lock.acquire_for(10s);
    const auto wait = std::chrono::steady_clock::now() - start;
    if (!acquired) {
        ++receipt_.gave_up;
        std::cerr << "a worker gave up: " << acquired.message() << '\n';
        return false;
    }
    ++receipt_.acquisitions;
    receipt_.contended += acquired.attempts() > 1 ? 1 : 0;
    receipt_.waits.push_back(std::chrono::duration_cast<std::chrono::microseconds>(wait));
    return true;
}

/// 10 ms, more or less.
void Worker::pause() {
    std::this_thread::sleep_for(std::uniform_int_distribution{5'000, 15'000}(random_)*1us);
}

}  // namespace flash_sale
