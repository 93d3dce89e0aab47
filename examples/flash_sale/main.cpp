// What is a distributed lock for, and does this one hold when Redis nodes crash and freeze?
//
// A flash sale: eight processes sell a limited stock that is kept in a file. Run by ../demo.sh.
#include "decimal.hpp"
#include "interruption.hpp"
#include "nemesis.hpp"
#include "report.hpp"
#include "sale.hpp"
#include "support/cluster.hpp"

#include <exception>
#include <iomanip>
#include <iostream>

namespace {

using namespace flash_sale;
using redlock::support::Cluster;
using redlock::support::RedisConfig;
using namespace std::chrono_literals;

constexpr int stock = 600;

void say(std::chrono::milliseconds elapsed, const std::string& what) {
    std::cout << std::setw(9) << in_seconds(elapsed) << "  " << what << std::endl;
}

void say_stock(const Sale& sale) {
    say(sale.elapsed(), "stock " + std::to_string(sale.left()));
}

/// Until it is over; a line a second, and one for each deed of the nemesis.
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
        Sale sale{stock, ""};
        auto account = watch(interruption, sale, nullptr);
        if (account.oversold() > 0 || sales == 3) return account;
        std::cout << "Lucky: nobody got in another's way. Again:\n";
    }
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
    Sale sale{stock, nodes.uri_list()};
    const auto locked = watch(interruption, sale, &nemesis);

    std::cout << '\n';
    print_table(std::cout, unlocked, locked, nemesis.downtimes());
    const bool as_promised = unlocked.oversold() > 0 && flawless(locked) && nemesis.done();
    std::cout << (as_promised ? "\nNothing was oversold with the lock.\n" : "\nNOT as promised.\n");
    return as_promised ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
    const std::vector<std::string> words{argv + 1, argv + argc};
    if (words.size() == 4 && words[0] == "worker") {
        serve_customers(words[1], words[2], words[3]);
        return 0;
    }
    return run();
} catch (const flash_sale::Interrupted& interrupted) {
    std::cerr << "interrupted; all processes and files are gone\n";
    return 128 + interrupted.signal;
} catch (const std::exception& error) {
    std::cerr << "flash_sale: " << error.what() << '\n';
    return 2;
}
