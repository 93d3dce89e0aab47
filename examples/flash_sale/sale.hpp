// One flash sale: a stock, eight processes that sell it, and the account of it afterwards.
#pragma once

#include "receipt.hpp"
#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <deque>
#include <filesystem>
#include <string>

namespace flash_sale {

/// The numbers of one sale.
struct Account {
    int stock = 0;
    int left = 0;
    Receipt total{};

    int oversold() const { return total.sold > stock ? total.sold - stock : 0; }
};

class Sale {
public:
    static constexpr int workers = 8;

    /// Starts the workers, which are this program again. With `redlock_nodes` they lock; without, they do
    /// not.
    Sale(int stock, const std::string& redlock_nodes);

    bool running();
    int left() const;
    std::chrono::milliseconds elapsed() const;

    /// Requires !running(). Throws std::runtime_error if a worker failed.
    Account account();

private:
    std::filesystem::path receipt(int worker) const;

    int stock_;
    redlock::support::TemporaryDirectory directory_;
    std::chrono::steady_clock::time_point start_;
    std::deque<redlock::support::ChildProcess> workers_;
};

/// What such a process does: sells from the file `stock`, with the lock if `redlock_nodes` is not empty, and
/// writes its receipt.
void serve_customers(const std::filesystem::path& stock, const std::filesystem::path& receipt,
                     const std::string& redlock_nodes);

}  // namespace flash_sale
