// The memory that a test and its worker processes share: when to start, when to stop, and a diary for each
// worker. It outlives a worker that is killed in the middle of a hold, and with it what was held.
#pragma once

#include "hold.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace redlock::exclusion {

/// What one worker writes, and the test reads at any time.
class Diary {
public:
    static constexpr std::size_t most_holds = 60'000;

    // ---- For the worker.
    void begin_hold(std::int64_t at) {
        auto& entry = entries_.at(static_cast<std::size_t>(holds()));
        cell(entry.from).store(at, std::memory_order_relaxed);
        cell(entry.until).store(at, std::memory_order_relaxed);
        cell(holds_).fetch_add(1, std::memory_order_release);
    }
    void still_held(std::int64_t at) {
        cell(entries_.at(static_cast<std::size_t>(holds() - 1)).until).store(at, std::memory_order_relaxed);
    }
    void count_attempt() { cell(attempts_).fetch_add(1, std::memory_order_relaxed); }
    void waited(std::int64_t span) {
        if (span > longest_wait()) cell(longest_wait_).store(span, std::memory_order_relaxed);
    }
    bool full() { return holds() >= static_cast<std::int64_t>(most_holds); }

    // ---- For everybody.
    std::int64_t holds() { return cell(holds_).load(std::memory_order_acquire); }
    std::int64_t attempts() { return cell(attempts_).load(std::memory_order_relaxed); }
    /// The longest time from wanting the lock to holding it, in nanoseconds.
    std::int64_t longest_wait() { return cell(longest_wait_).load(std::memory_order_relaxed); }

    void read_into(std::vector<Hold>& all, std::size_t worker) {
        const auto count = static_cast<std::size_t>(holds());
        for (std::size_t i = 0; i < count; ++i)
            all.push_back({cell(entries_.at(i).from).load(std::memory_order_relaxed),
                           cell(entries_.at(i).until).load(std::memory_order_relaxed), worker});
    }

private:
    // All zero is a diary without an entry: the memory of a new file needs no constructor.
    static std::atomic_ref<std::int64_t> cell(std::int64_t& value) {
        return std::atomic_ref<std::int64_t>{value};
    }

    struct Entry {
        std::int64_t from;
        std::int64_t until;
    };
    std::int64_t attempts_;
    std::int64_t holds_;
    std::int64_t longest_wait_;
    std::array<Entry, most_holds> entries_;
};

class Board {
public:
    static constexpr std::size_t most_workers = 16;

    /// Maps the file; makes it if it is not there.
    explicit Board(const std::filesystem::path& path);
    ~Board();
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;

    void report_ready() { cell(sheet_->ready).fetch_add(1); }
    std::int32_t ready() { return cell(sheet_->ready).load(); }
    void start() { cell(sheet_->started).store(1); }
    bool started() { return cell(sheet_->started).load() != 0; }
    void stop() { cell(sheet_->stopped).store(1); }
    bool stopped() { return cell(sheet_->stopped).load() != 0; }

    Diary& diary(std::size_t worker) { return sheet_->diaries.at(worker); }

private:
    static std::atomic_ref<std::int32_t> cell(std::int32_t& value) {
        return std::atomic_ref<std::int32_t>{value};
    }

    struct Sheet {
        std::int32_t ready;
        std::int32_t started;
        std::int32_t stopped;
        std::array<Diary, most_workers> diaries;
    };
    Sheet* sheet_;
};

}  // namespace redlock::exclusion
