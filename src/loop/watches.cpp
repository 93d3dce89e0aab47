#include "watches.hpp"

#include <redlock/detail/memory.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace redlock::loop {

/// The old watches end first, because a new descriptor can have the number of a closed one.
void Watches::watch(std::span<const PollEntry> entries) {
    if (loop_ == nullptr) return;
    end_all_but(entries);
    bool complete = true;
    for (const auto& entry : entries) {
        if (entry.fd < 0) continue;
        const auto set_one = [&] { set(of(entry), entry.reads, entry.writes); };
        complete = detail::has_memory_for(set_one) && complete;
    }
    if (!complete) throw std::bad_alloc{};
}

void Watches::end_all_but(std::span<const PollEntry> entries) noexcept {
    for (auto it = watches_.begin(); it != watches_.end();) {
        const bool is_wanted =
            std::ranges::any_of(entries, [&](const PollEntry& entry) { return it->is_for(entry); });
        if (!is_wanted && it->watched != it->fd) {
            drop(*it);
            it = watches_.erase(it);
            continue;
        }
        // Without memory, on_ready() is called in vain.
        if (!is_wanted) (void)detail::has_memory_for([&] { set(*it, false, false); });
        ++it;
    }
}

Watches::Watch& Watches::of(const PollEntry& entry) {
    const auto known = std::ranges::find_if(watches_, [&](const Watch& it) { return it.is_for(entry); });
    if (known != watches_.end()) return *known;
    auto& added = watches_.emplace_back(Watch{.fd = entry.fd});
    if (entry.socket == nullptr) added.watched = ::fcntl(entry.fd, F_DUPFD_CLOEXEC, 0);
    if (added.watched >= 0) return added;
    watches_.pop_back();
    throw std::bad_alloc{};  // no descriptor is left
}

void Watches::set(Watch& it, bool reads, bool writes) {
    if (it.reads == reads && it.writes == writes) return;
    it.reads = it.writes = false;  // if watch() throws, the earlier watch may be over
    loop_->watch(it.watched, reads, writes);
    it.reads = reads;
    it.writes = writes;
}

void Watches::drop(const Watch& it) noexcept {
    loop_->forget(it.watched);
    if (it.watched != it.fd) ::close(it.watched);
}

void Watches::forget(int fd) noexcept {
    const auto it = std::ranges::find(watches_, fd, &Watch::watched);
    if (it == watches_.end()) return;
    drop(*it);
    watches_.erase(it);
}

int Watches::on_ready(int fd) noexcept {
    const auto it = std::ranges::find(watches_, fd, &Watch::watched);
    if (it == watches_.end()) return -1;
    it->reads = it->writes = false;
    const int ready = it->fd;
    // The duplicate may be one of an earlier resolution, at whose end it would be ready for ever.
    if (it->watched != ready) {
        drop(*it);
        watches_.erase(it);
    }
    return ready;
}

void Watches::detach() noexcept {
    for (const auto& it : watches_) drop(it);
    watches_.clear();
    loop_ = nullptr;
}

}  // namespace redlock::loop
