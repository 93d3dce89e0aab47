// One flash sale: a stock, eight processes that sell it, and the final account.
#pragma once

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

namespace flash_sale {

/// The results of one worker. It writes them to a file, and the process that runs the sale adds them up.
struct Receipt {
    int sold = 0;
    int acquisitions = 0;
    int contended = 0;  ///< acquisitions that took more than one attempt
    int lost = 0;       ///< sales not written, because the lock was no longer valid
    int gave_up = 0;    ///< acquisitions that failed
    std::vector<std::chrono::microseconds> waits{};  ///< one for each acquisition

    Receipt& operator+=(const Receipt& other);

    void write(const std::filesystem::path& file) const;
    static Receipt read(const std::filesystem::path& file);
};

/// The numbers of one sale.
struct Account {
    int stock = 0;
    int left = 0;
    Receipt total{};

    int oversold() const { return total.sold > stock ? total.sold - stock : 0; }
    /// Returns true if every item was sold exactly once.
    bool flawless() const { return total.sold == stock && left == 0; }
};

/// The stock is a number in a plain file that nothing protects. It has a fixed width and is written in one
/// piece. Therefore a race without a lock loses sales, and never mixes digits.
int read_stock(const std::filesystem::path& file);
void write_stock(const std::filesystem::path& file, int stock);

class Sale {
public:
    static constexpr int workers = 8;

    /// Starts the workers, which run this program again. They lock if there are `nodes`.
    Sale(int stock, const std::vector<std::string>& nodes);

    bool running();
    int left() const { return read_stock(directory_ / "stock"); }
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

/// The work of such a process: sells from the file `stock`, with the lock if there are `nodes`, and writes
/// its receipt.
void serve_customers(const std::filesystem::path& stock, const std::filesystem::path& receipt,
                     const std::vector<std::string>& nodes);

}  // namespace flash_sale
