// What every worker claims to hold, in memory that it shares with the judge: a file, which outlives a worker
// that is killed, and with it the claim.
//
// A claim goes from the instant at which acquire() had succeeded to the first of these: the release begins,
// the loss is told, the promised validity ends. In between valid() is true, also while the worker is stopped,
// and also after it was killed: nobody else may claim the same resource. All instants are the boot clock's,
// in nanoseconds, which all processes of a machine share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <vector>

namespace redlock::torture {

using Instant = std::int64_t;

Instant now();

/// What a worker does with locks.
enum class Mode : std::int64_t { plain, fenced, several, watched };
inline constexpr std::array modes{Mode::plain, Mode::fenced, Mode::several, Mode::watched};

struct Claim {
    Instant from = 0;
    Instant promised_until = 0;
    Instant released_at = 0;      ///< 0: never
    Instant told_at = 0;          ///< of the loss; 0: never
    std::uint64_t resources = 0;  ///< one bit each
    std::uint64_t fencing_token = 0;
    std::size_t worker = 0;

    Instant until() const {
        auto end = promised_until;
        for (const auto at : {released_at, told_at})
            if (at != 0) end = std::min(end, at);
        return end;
    }
};

/// The pages of one worker.
class Pages {
public:
    static constexpr std::size_t most_claims = 100'000;

    // ---- For the worker, its watchdog included.
    void begin(const Claim& claim) {
        auto& line = lines_.at(static_cast<std::size_t>(count()));
        line = {claim.from,
                claim.promised_until,
                0,
                0,
                static_cast<std::int64_t>(claim.resources),
                static_cast<std::int64_t>(claim.fencing_token)};
        cell(count_).fetch_add(1, std::memory_order_release);
    }
    void promise(Instant until) { cell(last().promised_until).store(until, std::memory_order_relaxed); }
    void release(Instant at) { cell(last().released_at).store(at, std::memory_order_relaxed); }
    void tell(Instant at) { cell(last().told_at).store(at, std::memory_order_relaxed); }
    void attempt() { cell(attempts_).fetch_add(1, std::memory_order_relaxed); }
    bool full() { return count() >= static_cast<std::int64_t>(most_claims); }
    void set_mode(Mode mode) { cell(mode_).store(static_cast<std::int64_t>(mode)); }

    // ---- For the judge.
    Mode mode() { return static_cast<Mode>(cell(mode_).load()); }
    std::int64_t count() { return cell(count_).load(std::memory_order_acquire); }
    std::int64_t attempts() { return cell(attempts_).load(std::memory_order_relaxed); }
    void read_into(std::vector<Claim>& all, std::size_t worker);

private:
    // All zero is an empty page: the memory of a new file needs no constructor.
    struct Line {
        std::int64_t from;
        std::int64_t promised_until;
        std::int64_t released_at;
        std::int64_t told_at;
        std::int64_t resources;
        std::int64_t fencing_token;
    };
    static std::atomic_ref<std::int64_t> cell(std::int64_t& value) { return std::atomic_ref{value}; }
    Line& last() { return lines_.at(static_cast<std::size_t>(count() - 1)); }

    std::int64_t mode_;
    std::int64_t attempts_;
    std::int64_t count_;
    std::array<Line, most_claims> lines_;
};

class Ledger {
public:
    static constexpr std::size_t workers = 16;

    /// Maps the file; makes it if it is not there.
    explicit Ledger(const std::filesystem::path& path);
    ~Ledger();
    Ledger(const Ledger&) = delete;
    Ledger& operator=(const Ledger&) = delete;

    Pages& pages(std::size_t worker) { return sheet_->pages.at(worker); }
    void stop() { std::atomic_ref{sheet_->stopped}.store(1); }
    bool stopped() { return std::atomic_ref{sheet_->stopped}.load() != 0; }

    std::vector<Claim> claims();
    std::int64_t attempts();

private:
    struct Sheet {
        std::int64_t stopped;
        std::array<Pages, workers> pages;
    };
    Sheet* sheet_;
};

}  // namespace redlock::torture
