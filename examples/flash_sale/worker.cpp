// One of the processes that sell: it serves one customer after the other until the stock is gone.
#include "sale.hpp"

#include <redlock/redlock.hpp>

#include <iostream>
#include <random>
#include <thread>
#include <utility>

namespace flash_sale {
namespace {

using namespace std::chrono_literals;

/// Selling is read, think, write back, as with any record of which two programs have a copy.
class Worker {
public:
    explicit Worker(std::filesystem::path stock) : stock_(std::move(stock)) {}

    /// Sells as if it were alone.
    Receipt sell_unlocked() {
        while (sell_one()) pause();
        return receipt_;
    }

    /// Sells only while it holds the lock.
    Receipt sell_locked(redlock::Nodes& nodes) {
        // The pause between attempts suits the 10 ms that the others hold it.
        redlock::Lock lock{nodes, "flash-sale:stock", {.ttl = 5s, .retry = {.delay = 20ms}}};
        while (sell_one(lock)) pause();
        return receipt_;
    }

private:
    /// False when there was nothing left to sell.
    bool sell_one() {
        const int stock = read_stock(stock_);
        if (stock <= 0) return false;
        pause();  // the payment; meanwhile the others sell, too
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
        (void)lock.release();  // should too few nodes answer, the rest goes by itself after the ttl
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

    /// 10 ms, more or less.
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
