// What a worker did, handed from its process to the one that adds it all up.
#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

namespace flash_sale {

struct Receipt {
    int sold = 0;
    int acquisitions = 0;
    int contended = 0;  ///< acquisitions that took more than one attempt
    int lost = 0;       ///< locks that were no longer valid when the sale was to be written, so it was not
    int gave_up = 0;    ///< acquisitions that failed
    std::vector<std::chrono::microseconds> waits{};  ///< one an acquisition

    Receipt& operator+=(const Receipt& other);

    void write(const std::filesystem::path& file) const;
    static Receipt read(const std::filesystem::path& file);
};

}  // namespace flash_sale
