#include "watches.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

namespace redlock::loop {

Watches::Watch& Watches::of(int fd) {
    const auto index = static_cast<std::size_t>(fd);
    if (index >= of_fd_.size()) of_fd_.resize(index + 1);
    return of_fd_[index];
}

void Watches::begin(Task& task, PollEntry& entry) {
    if (loop_ == nullptr || entry.fd < 0) return;
    auto watched = entry.fd;
    if (entry.socket == nullptr) {
        if (of(entry.fd).duplicate < 0) {
            const int duplicate = ::fcntl(entry.fd, F_DUPFD_CLOEXEC, 0);
            if (duplicate < 0) throw std::bad_alloc{};  // no descriptor is left
            of(entry.fd).duplicate = duplicate;
        }
        watched = of(entry.fd).duplicate;
        of(watched).original = entry.fd;
    }
    auto& waiting = of(entry.fd).waiting;
    if (std::ranges::find(waiting, &entry, &Waiting::entry) == waiting.end())
        waiting.push_back({&task, &entry});
    watch(watched, entry);
}

void Watches::watch(int fd, const PollEntry& entry) {
    auto& it = of(fd);
    if (it.reads == entry.reads && it.writes == entry.writes) return;
    it.watched = true;
    loop_->watch(fd, entry.reads, entry.writes);
    it.reads = entry.reads;
    it.writes = entry.writes;
}

void Watches::end(const PollEntry& entry) noexcept {
    const auto index = static_cast<std::size_t>(entry.fd);
    if (entry.fd < 0 || index >= of_fd_.size()) return;
    auto& it = of_fd_[index];
    if (std::erase_if(it.waiting, [&](const Waiting& waits) { return waits.entry == &entry; }) == 0) return;
    if (!it.waiting.empty()) return;
    close_duplicate(it);
    if (loop_ == nullptr || (!it.reads && !it.writes)) return;
    it.reads = it.writes = false;
    try {
        loop_->watch(entry.fd, false, false);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): then ready() is called in vain
    }
}

void Watches::close_duplicate(Watch& watch) noexcept {
    const auto duplicate = std::exchange(watch.duplicate, -1);
    if (duplicate < 0) return;
    forget(duplicate);
    ::close(duplicate);
}

void Watches::forget(int fd) noexcept {
    const auto index = static_cast<std::size_t>(fd);
    if (fd < 0 || index >= of_fd_.size()) return;
    auto& it = of_fd_[index];
    if (loop_ != nullptr && it.watched) loop_->forget(fd);
    close_duplicate(it);
    it.waiting.clear();
    it.original = -1;
    it.reads = it.writes = it.watched = false;
}

void Watches::on_ready(int fd) noexcept {
    const auto index = static_cast<std::size_t>(fd);
    if (fd < 0 || index >= of_fd_.size()) return;
    auto& it = of_fd_[index];
    it.reads = it.writes = false;
    const auto& waiting =
        it.original < 0 ? it.waiting : of_fd_[static_cast<std::size_t>(it.original)].waiting;
    for (const auto& [task, entry] : waiting) {
        entry->ready = true;
        task->wake();
    }
}

void Watches::detach() noexcept {
    for (std::size_t fd = 0; fd < of_fd_.size(); ++fd)
        if (of_fd_[fd].original < 0) forget(static_cast<int>(fd));  // and closes its duplicate
    loop_ = nullptr;
}

}  // namespace redlock::loop
