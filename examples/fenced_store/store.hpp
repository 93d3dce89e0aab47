// Rows in an SQLite file that refuse holders of a lock who come too late.
//
//     Store store{"accounts.db"};
//     if (lock.acquire()) {
//         const auto balance = store.read("account:7", lock.fencing_token());
//         ...
//         if (!store.write("account:7", new_balance, lock.fencing_token())) start_over();
//     }
//
// Beside each row stands the newest fencing token it was shown. A read or write with an older one comes from
// a holder whose lock has ended, and a later holder has been here since: it is refused. A read must show its
// token, too: where the later holder has only read so far, the earlier one's write would be overwritten by
// what the later one makes of the value it has read, and be lost. The look at the newest token, the access
// and the new token are one transaction.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;

namespace fenced_store {

/// What became of a read or a write.
struct [[nodiscard]] Answer {
    bool accepted;
    std::uint64_t newest_fencing_token;    ///< that the row was shown; if accepted, the one just shown
    std::optional<std::string> content{};  ///< of a read: none, too, where the row was never written

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

    /// Accepted if `fencing_token` is the newest that the row was shown, or newer; else nothing changes. A
    /// row is what one lock is for: tokens of different resources do not compare. Both throw
    /// std::invalid_argument for 0, which is no token, and for what SQLite cannot count up to.
    Answer read(std::string_view row, std::uint64_t fencing_token);
    Answer write(std::string_view row, std::string_view content, std::uint64_t fencing_token);

    /// The last to write wins, which is what fencing is there to prevent.
    std::optional<std::string> read_unfenced(std::string_view row);
    void write_unfenced(std::string_view row, std::string_view content);

private:
    struct Close {
        void operator()(sqlite3* database) const noexcept;
    };

    std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace fenced_store
