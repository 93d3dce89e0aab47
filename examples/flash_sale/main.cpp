// What is a distributed lock for, and does this one hold when Redis nodes crash and freeze?
//
// In a flash sale, eight processes sell a limited stock that is kept in a file. ../demo.sh builds and runs
// this program.
#include "decimal.hpp"
#include "nemesis.hpp"
#include "sale.hpp"
#include "support/cluster.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <exception>
#include <iomanip>
#include <iostream>

namespace {

using namespace flash_sale;
using redlock::support::Cluster;
using redlock::support::RedisConfig;
using namespace std::chrono_literals;

constexpr int stock = 600;

/// Thrown for Ctrl-C and similar signals, so that an interrupted run cleans up as a complete one does.
struct Interrupted {
    int signal;
};

/// Blocks SIGINT, SIGQUIT, SIGTERM, SIGHUP and SIGPIPE from its construction on. They remain pending until
/// sleep() is called. It must be constructed before any other thread. SIGPIPE comes when the reader of our
/// output has gone.
class Interruption {
public:
    Interruption() {
        sigemptyset(&signals_);
        for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&signals_, signal);
        ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    }

    /// Sleeps for less than a second. Throws Interrupted as soon as one of the signals has arrived.
    void sleep(std::chrono::nanoseconds span) const {
        const timespec timeout{0, span.count()};
        const int signal = ::sigtimedwait(&signals_, nullptr, &timeout);
        if (signal > 0) throw Interrupted{signal};
    }

private:
    sigset_t signals_;
};

void say(std::chrono::milliseconds elapsed, const std::string& what) {
    std::cout << std::setw(9) << in_seconds(elapsed) << "  " << what << std::endl;
}

void say_stock(const Sale& sale) {
    say(sale.elapsed(), "stock " + std::to_string(sale.left()));
}

/// Blocks until the sale is over. Prints a line each second, and one for each action of the nemesis.
Account watch(const Interruption& interruption, Sale& sale, Nemesis* nemesis) {
    auto next_line = 0ms;
    while (sale.running()) {
        interruption.sleep(20ms);
        if (nemesis != nullptr)
            if (const auto deed = nemesis->act(sale.elapsed()); !deed.empty()) say(sale.elapsed(), deed);
        if (sale.elapsed() < next_line) continue;
        say_stock(sale);
        next_line += 1s;
    }
    auto account = sale.account();
    say(sale.elapsed(), "over: sold " + std::to_string(account.total.sold) + " of " + std::to_string(stock));
    return account;
}

Account sell_unlocked(const Interruption& interruption) {
    for (int sales = 1;; ++sales) {
        Sale sale{stock, {}};
        auto account = watch(interruption, sale, nullptr);
        if (account.oversold() > 0 || sales == 3) return account;
        std::cout << "Lucky: nobody got in another's way. Again:\n";
    }
}

void row(const std::string& what, const std::string& unlocked, const std::string& locked) {
    std::cout << "  " << std::left << std::setw(24) << what << std::right << std::setw(18) << unlocked
              << std::setw(18) << locked << '\n';
}

void row(const std::string& what, int unlocked, int locked) {
    row(what, std::to_string(unlocked), std::to_string(locked));
}

/// Returns the wait that the given share of all waits did not exceed.
std::string quantile(std::vector<std::chrono::microseconds> waits, double share) {
    if (waits.empty()) return "-";
    std::ranges::sort(waits);
    return in_milliseconds(waits[static_cast<std::size_t>(share * static_cast<double>(waits.size() - 1))]);
}

/// Prints one column for each sale.
void print_table(const Account& unlocked, const Account& locked, const std::vector<std::string>& downtimes) {
    const auto& total = locked.total;
    row("", "without the lock", "with the lock");
    row("in stock", unlocked.stock, locked.stock);
    row("sold", unlocked.total.sold, total.sold);
    row("oversold", unlocked.oversold(), locked.oversold());
    row("acquisitions", "-", std::to_string(total.acquisitions));
    row("contended", "-", std::to_string(total.contended));
    row("lost before the sale", "-", std::to_string(total.lost));
    row("median time to acquire", "-", quantile(total.waits, 0.5));
    row("p99 time to acquire", "-", quantile(total.waits, 0.99));
    for (const auto& downtime : downtimes) std::cout << "  down with the lock        " << downtime << '\n';
}

int run() {
    const Interruption interruption;
    std::cout << "Five independent redis-servers start on 127.0.0.1, ports";
    Cluster nodes{5, RedisConfig{}.keeps_data()};
    for (const auto& node : nodes) std::cout << ' ' << node.port();
    std::cout << "\n\nPart 1: " << Sale::workers << " processes sell " << stock << " items without a lock.\n"
              << "Each reads the stock from a file, takes the payment, and writes back one less.\n";
    const auto unlocked = sell_unlocked(interruption);

    Nemesis nemesis{nodes};
    std::cout << "\nPart 2: the same, each sale under a redlock::Lock. Meanwhile\n" << nemesis.plan() << '\n';
    Sale sale{stock, nodes.uris()};
    const auto locked = watch(interruption, sale, &nemesis);

    std::cout << '\n';
    print_table(unlocked, locked, nemesis.downtimes());
    const bool as_promised = unlocked.oversold() > 0 && locked.flawless() && nemesis.done();
    std::cout << (as_promised ? "\nNothing was oversold with the lock.\n" : "\nNOT as promised.\n");
    return as_promised ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
    const std::vector<std::string> words{argv + 1, argv + argc};
    if (words.size() >= 3 && words[0] == "worker") {
        serve_customers(words[1], words[2], {words.begin() + 3, words.end()});
        return 0;
    }
    return run();
} catch (const Interrupted& interrupted) {
    std::cerr << "interrupted; all processes and files are gone\n";
    return 128 + interrupted.signal;
} catch (const std::exception& error) {
    std::cerr << "flash_sale: " << error.what() << '\n';
    return 2;
}
