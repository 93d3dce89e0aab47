// One of the processes that sell: it serves one customer after the other until the stock is gone.
#pragma once

#include "receipt.hpp"
#include "store.hpp"

#include <redlock/redlock.hpp>

#include <random>

namespace flash_sale {

class Worker {
public:
    explicit Worker(Store& store) : store_(store) {}

    /// Sells as if it were alone.
    Receipt sell_unlocked();

    /// Sells only while it holds the lock.
    Receipt sell_locked(redlock::Nodes& nodes);

private:
    bool sell_one();
    bool sell_one(redlock::Lock& lock);
    bool acquire(redlock::Lock& lock);
    void pause();

    Store& store_;
    Receipt receipt_{};
    std::mt19937 random_{std::random_device{}()};
};

}  // namespace flash_sale
