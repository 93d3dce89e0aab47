#include "receipt.hpp"

#include <fstream>
#include <stdexcept>

namespace flash_sale {

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

}  // namespace flash_sale
