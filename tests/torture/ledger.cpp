#include "ledger.hpp"

#include <redlock/clock.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace redlock::torture {

Instant now() {
    return boot_clock().now().time_since_epoch().count();
}

void Pages::read_into(std::vector<Claim>& all, std::size_t worker) {
    const auto lines = static_cast<std::size_t>(count());
    for (std::size_t i = 0; i < lines; ++i) {
        auto& line = lines_.at(i);
        const auto read = [](std::int64_t& value) { return cell(value).load(std::memory_order_relaxed); };
        all.push_back({.from = read(line.from),
                       .promised_until = read(line.promised_until),
                       .released_at = read(line.released_at),
                       .told_at = read(line.told_at),
                       .resources = static_cast<std::uint64_t>(read(line.resources)),
                       .fencing_token = static_cast<std::uint64_t>(read(line.fencing_token)),
                       .worker = worker});
    }
}

Ledger::Ledger(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(Sheet)) != 0)
        throw std::system_error(errno, std::generic_category(), path);
    void* const memory = ::mmap(nullptr, sizeof(Sheet), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    sheet_ = static_cast<Sheet*>(memory);
}

Ledger::~Ledger() {
    ::munmap(sheet_, sizeof(Sheet));
}

std::vector<Claim> Ledger::claims() {
    std::vector<Claim> all;
    for (std::size_t worker = 0; worker < workers; ++worker) pages(worker).read_into(all, worker);
    return all;
}

std::int64_t Ledger::attempts() {
    std::int64_t sum = 0;
    for (std::size_t worker = 0; worker < workers; ++worker) sum += pages(worker).attempts();
    return sum;
}

}  // namespace redlock::torture
