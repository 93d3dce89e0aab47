// One who holds the lock of an account, in a process of its own, and deposits money into it.
#pragma once

#include "store.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace fenced_store {

/// The resource that is locked, and the row that it is for.
inline constexpr auto* account = "account:7";

inline constexpr std::chrono::milliseconds ttl{1'000};

/// How the store is written to.
enum class Writing : bool { unfenced, fenced };

/// Whether the holder is paused once, between its last look at the lock and its write.
enum class Pause : bool { none, before_the_write };

class Holder {
public:
    Holder(const std::filesystem::path& file, const std::vector<std::string>& uris, Writing writing,
           Pause pause);

    /// Adds so much to the balance, under the lock, and says each step on a line of standard output. Where
    /// the write is refused it starts over from what stands there then. Throws std::runtime_error when it
    /// cannot get the lock.
    void deposit(int amount);

private:
    bool deposit_once(int amount);
    void acquire();
    bool write(const std::string& balance);

    Store store_;
    redlock::RedisNodes nodes_;
    redlock::Lock lock_;
    Writing writing_;
    Pause pause_;
};

/// In a process where pause() will be called: before any other thread is started.
void prepare_for_pause();

}  // namespace fenced_store
