// The cryptographic random number generator of the operating system (rule A6).
#include <redlock/entropy.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#if defined(__APPLE__)
#include <sys/random.h>
#endif

namespace redlock {
namespace {

class OsEntropy final : public Entropy {
public:
    std::error_code fill(std::span<std::byte> out) noexcept override {
        constexpr std::size_t max_per_call = 256;
        while (!out.empty()) {
            const auto part = out.first(std::min(out.size(), max_per_call));
            if (::getentropy(part.data(), part.size()) != 0) return {errno, std::generic_category()};
            out = out.subspan(part.size());
        }
        return {};
    }
};

}  // namespace

Entropy& os_entropy() noexcept {
    static OsEntropy entropy;
    return entropy;
}

}  // namespace redlock
