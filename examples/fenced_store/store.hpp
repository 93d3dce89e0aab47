// Rows in an SQLite file. The store refuses an access by a holder whose lock has ended, if a later holder has
// been there.
//
//     Store store{"accounts.db"};
//     if (lock.acquire()) {
//         const auto balance = store.read("account:7", lock.fencing_token());
//         ...
//         if (!store.write("account:7", new_balance, lock.fencing_token())) start_over();
//     }
//
// Each row has the newest fencing token of any access to it. If the token of a read or write is older, the
// store refuses the access: the lock of that holder has ended, and a later holder has accessed the row since.
//
// A read must have a token, too. Assume that the later holder has only read so far. If the store accepted a
// write of the earlier holder now, the later holder would overwrite it with a value that it computed from the
// old content. The write of the earlier holder would be lost.
//
// Each access compares the tokens, reads or writes the row, and stores the new token in one transaction.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;

namespace fenced_store {

/// The outcome of a read or a write.
struct [[nodiscard]] Answer {
    bool accepted;
    std::uint64_t newest_fencing_token;    ///< of the row; if accepted, the token of this access
    std::optional<std::string> content{};  ///< of a read; empty if the row was never written

    explicit operator bool() const noexcept { return accepted; }
};

/// Several processes may have the same file open. An object belongs to one thread at a time, and the child of
/// a fork() must not use the object of its parent. If the file cannot be used, or another process keeps it
/// locked for `busy_timeout_in_ms`, every function throws std::runtime_error with the file and the error
/// message of SQLite.
class Store {
public:
    static constexpr int busy_timeout_in_ms = 10'000;

    /// Creates the file if it does not exist.
    explicit Store(const std::filesystem::path& file);

    /// Accepts the access if `fencing_token` is at least the newest token of the row; otherwise nothing
    /// changes. Use one row for the data of one lock, because tokens of different resources cannot be
    /// compared. Both functions throw std::invalid_argument if the token is 0, which is not a token, or 2^63
    /// or more, which SQLite cannot store.
    Answer read(std::string_view row, std::uint64_t fencing_token);
    Answer write(std::string_view row, std::string_view content, std::uint64_t fencing_token);

    /// The last writer wins. This is what fencing prevents.
    std::optional<std::string> read_unfenced(std::string_view row);
    void write_unfenced(std::string_view row, std::string_view content);

private:
    struct Close {
        void operator()(sqlite3* database) const noexcept;
    };

    std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace fenced_store
