// Rows in an SQLite file that refuses writers who come too late.
//
//     Store store{"accounts.db"};
//     if (lock.acquire()) {
//         auto balance = store.read("account:7");
//         ...
//         if (!store.write("account:7", balance, lock.fencing_token())) start_over();
//     }
//
// Beside each row stands the newest fencing token it was written with. A write that shows an older one comes
// from a holder whose lock has ended, and a later holder has been here since: it is refused. The look at the
// newest token, the write and the new token are one transaction, so no other process comes in between, and
// what was remembered before a crash is remembered after it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;

namespace fenced_store {

/// What became of a write.
struct [[nodiscard]] Answer {
    bool accepted;
    std::uint64_t newest_fencing_token;  ///< that the row has seen; of a write accepted, its own

    explicit operator bool() const noexcept { return accepted; }
};

/// Several processes may have the same file open; an object belongs to one thread at a time, and not to a
/// child of fork(). Everything throws std::runtime_error with the file and SQLite's words when the file
/// cannot be used, or stays locked by another process for `patience`.
class Store {
public:
    static constexpr int patience_in_ms = 10'000;

    /// Makes the file if there is none.
    explicit Store(const std::filesystem::path& file);

    /// What stands in the row; nothing if it was never written.
    std::optional<std::string> read(std::string_view row);

    /// Accepted if `fencing_token` is the newest that the row has seen, or newer; else nothing changes. A row
    /// is what one lock is for: tokens of different resources do not compare. Throws std::invalid_argument
    /// for 0, which is no token, and for what SQLite cannot count up to.
    Answer write(std::string_view row, std::string_view content, std::uint64_t fencing_token);

    /// Whoever comes last wins, which is what fencing is there to prevent.
    void write_unfenced(std::string_view row, std::string_view content);

private:
    struct Close {
        void operator()(sqlite3* database) const noexcept;
    };

    std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace fenced_store
