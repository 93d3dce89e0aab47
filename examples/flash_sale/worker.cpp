// One of the selling processes. It serves one customer after the other until the stock is gone.
#include "sale.hpp"

#include <redlock/redlock.hpp>

#include <iostream>
#include <random>
#include <thread>
#include <utility>

namespace flash_sale {
namespace {

using namespace std::chrono_literals;

/// A sale reads the stock, takes the payment, and writes the stock back. Any program that changes shared data
/// has this pattern.
class Worker {
public:
    explicit Worker(std::filesystem::path stock) : stock_(std::move(stock)) {}

    /// Sells without regard to the other workers.
    Receipt sell_unlocked() {
        while (sell_one()) pause();
        return receipt_;
    }

    /// Sells only while it holds the lock.
    Receipt sell_locked(redlock::Nodes& nodes) {
        // The pause between attempts fits the 10 ms for which another worker holds the lock.
        redlock::Lock lock{nodes, "flash-sale:stock", {.ttl = 5s, .retry = {.delay = 20ms}}};
        while (sell_one(lock)) pause();
        return receipt_;
    }

private:
    /// Returns false if nothing was left to sell.
    bool sell_one() {
        const int stock = read_stock(stock_);
        if (stock <= 0) return false;
        pause();  // the payment; meanwhile the other workers sell, too
        write_stock(stock_, stock - 1);
        ++receipt_.sold;
        return true;
    }

    bool sell_one(redlock::Lock& lock) {
        if (!acquire(lock)) return receipt_.gave_up < 3;
        const int stock = read_stock(stock_);
        if (stock > 0) pause();
        if (stock > 0 && lock.valid()) {
            write_stock(stock_, stock - 1);
            ++receipt_.sold;
        } else if (stock > 0) {
            ++receipt_.lost;  // another worker may be selling this item now
        }
        (void)lock.release();  // a node that does not reply frees the resource after the ttl
        return stock > 0;
    }

    bool acquire(redlock::Lock& lock) {
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

    /// Sleeps for 5 to 15 ms.
    void pause() { std::this_thread::sleep_for(std::uniform_int_distribution{5'000, 15'000}(random_)*1us); }

    std::filesystem::path stock_;
    Receipt receipt_{};
    std::mt19937 random_{std::random_device{}()};
};

}  // namespace

void serve_customers(const std::filesystem::path& stock, const std::filesystem::path& receipt,
                     const std::vector<std::string>& nodes) {
    Worker worker{stock};
    if (nodes.empty()) {
        worker.sell_unlocked().write(receipt);
        return;
    }
    redlock::RedisNodes masters{nodes};
    worker.sell_locked(masters).write(receipt);
}

}  // namespace flash_sale
