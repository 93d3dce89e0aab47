#include "hold_log.hpp"

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

void WorkerLog::read_into(std::vector<Hold>& all, std::size_t worker) {
    const auto holds = static_cast<std::size_t>(count());
    for (std::size_t i = 0; i < holds; ++i) {
        auto& hold = holds_.at(i);
        const auto read = [](std::int64_t& value) { return cell(value).load(std::memory_order_relaxed); };
        all.push_back({.from = hold.from,
                       .valid_until = read(hold.valid_until),
                       .released_at = read(hold.released_at),
                       .notified_at = read(hold.notified_at),
                       .resources = hold.resources,
                       .fencing_token = hold.fencing_token,
                       .worker = worker,
                       .mode = mode()});
    }
}

HoldLog::HoldLog(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(Shared)) != 0)
        throw std::system_error(errno, std::generic_category(), path);
    void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    shared_ = static_cast<Shared*>(memory);
}

HoldLog::~HoldLog() {
    ::munmap(shared_, sizeof(Shared));
}

std::vector<Hold> HoldLog::holds() {
    std::vector<Hold> all;
    for (std::size_t worker = 0; worker < workers; ++worker) of(worker).read_into(all, worker);
    return all;
}

std::vector<Suspension> HoldLog::suspensions() {
    std::vector<Suspension> all;
    for (std::size_t process = 0; process < processes; ++process)
        suspensions_of(process).read_into(all, process);
    return all;
}

std::int64_t HoldLog::count() {
    std::int64_t sum = 0;
    for (std::size_t worker = 0; worker < workers; ++worker) sum += of(worker).count();
    return sum;
}

std::int64_t HoldLog::attempts() {
    std::int64_t sum = 0;
    for (std::size_t worker = 0; worker < workers; ++worker) sum += of(worker).attempts();
    return sum;
}

}  // namespace redlock::torture
