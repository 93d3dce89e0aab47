#include "sale.hpp"

#include "store.hpp"
#include "worker.hpp"

#include <sstream>
#include <stdexcept>
#include <vector>

namespace flash_sale {

Sale::Sale(int stock, const std::string& redlock_nodes)
    : stock_(stock), start_(std::chrono::steady_clock::now()) {
    Store::fill(directory_ / "stock", stock);
    for (int worker = 0; worker < workers; ++worker)
        workers_.emplace_back(
            redlock::support::Program{.words = {std::filesystem::read_symlink("/proc/self/exe"), "worker",
                                                directory_ / "stock", receipt(worker), redlock_nodes}});
}

bool Sale::running() {
    bool any = false;
    for (auto& worker : workers_) any = worker.running() || any;
    return any;
}

int Sale::left() const {
    return Store{directory_ / "stock"}.stock();
}

std::chrono::milliseconds Sale::elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start_);
}

Account Sale::account() {
    Account result{.stock = stock_, .left = left()};
    for (int worker = 0; worker < workers; ++worker) {
        if (workers_[static_cast<std::size_t>(worker)].wait() != 0)
            throw std::runtime_error("a worker failed");
        result.total += Receipt::read(receipt(worker));
    }
    return result;
}

std::filesystem::path Sale::receipt(int worker) const {
    return directory_ / ("receipt-" + std::to_string(worker));
}

void serve_customers(const std::filesystem::path& stock, const std::filesystem::path& receipt,
                     const std::string& redlock_nodes) {
    Store store{stock};
    Worker worker{store};
    if (redlock_nodes.empty()) {
        worker.sell_unlocked().write(receipt);
        return;
    }
    std::vector<std::string> uris;
    std::istringstream list{redlock_nodes};
    for (std::string uri; std::getline(list, uri, ',');) uris.push_back(uri);
    redlock::RedisNodes nodes{uris};
    worker.sell_locked(nodes).write(receipt);
}

}  // namespace flash_sale
