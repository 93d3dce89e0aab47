#include "sale.hpp"

#include <fstream>
#include <iomanip>
#include <stdexcept>
#include <utility>

namespace flash_sale {

int read_stock(const std::filesystem::path& file) {
    int stock = 0;
    if (!(std::ifstream{file} >> stock)) throw std::runtime_error("cannot read " + file.string());
    return stock;
}

void write_stock(const std::filesystem::path& file, int stock) {
    std::fstream out{file, std::ios::in | std::ios::out};  // opens the file without truncating it
    out << std::setfill('0') << std::setw(8) << stock << '\n';
    if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

Receipt& Receipt::operator+=(const Receipt& other) {
    sold += other.sold;
    acquisitions += other.acquisitions;
    contended += other.contended;
    lost += other.lost;
    gave_up += other.gave_up;
    waits.insert(waits.end(), other.waits.begin(), other.waits.end());
    return *this;
}

void Receipt::write(const std::filesystem::path& file) const {
    std::ofstream out{file};
    out << sold << ' ' << acquisitions << ' ' << contended << ' ' << lost << ' ' << gave_up << '\n';
    for (const auto wait : waits) out << wait.count() << '\n';
    if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

Receipt Receipt::read(const std::filesystem::path& file) {
    std::ifstream in{file};
    Receipt receipt;
    in >> receipt.sold >> receipt.acquisitions >> receipt.contended >> receipt.lost >> receipt.gave_up;
    if (!in) throw std::runtime_error("a worker left no receipt in " + file.string());
    for (std::chrono::microseconds::rep wait = 0; in >> wait;) receipt.waits.emplace_back(wait);
    return receipt;
}

Sale::Sale(int stock, const std::vector<std::string>& nodes)
    : stock_(stock), start_(std::chrono::steady_clock::now()) {
    const auto file = directory_ / "stock";
    std::ofstream{file}.close();
    write_stock(file, stock);
    for (int worker = 0; worker < workers; ++worker) {
        std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe"), "worker", file,
                                       receipt(worker)};
        words.insert(words.end(), nodes.begin(), nodes.end());
        workers_.emplace_back(redlock::support::Program{.words = std::move(words)});
    }
}

bool Sale::running() {
    bool any = false;
    for (auto& worker : workers_) any = worker.running() || any;
    return any;
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

}  // namespace flash_sale
