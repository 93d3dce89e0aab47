#include "store.hpp"

#include <sqlite3.h>

#include <limits>
#include <new>
#include <stdexcept>

namespace fenced_store {

namespace {

/// Throws std::runtime_error with the file of the database and the error message of SQLite.
[[noreturn]] void fail(sqlite3& database) {
    const auto* const file = ::sqlite3_db_filename(&database, "main");
    throw std::runtime_error("store " + std::string{file ? file : ""} + ": " + ::sqlite3_errmsg(&database));
}

class Statement {
public:
    Statement(sqlite3& database, std::string_view sql) : database_(database) {
        sqlite3_stmt* statement = nullptr;
        check(::sqlite3_prepare_v2(&database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr));
        statement_.reset(statement);
    }

    Statement& bind(std::string_view text) {
        const auto* const bytes =
            text.empty() ? "" : text.data();  // SQLite would take a null pointer for NULL
        check(::sqlite3_bind_text64(statement_.get(), ++bound_, bytes, text.size(), SQLITE_TRANSIENT,
                                    SQLITE_UTF8));
        return *this;
    }
    Statement& bind(std::int64_t number) {
        check(::sqlite3_bind_int64(statement_.get(), ++bound_, number));
        return *this;
    }

    /// Returns true if the statement has produced a row. A statement that changes something produces none.
    bool step() {
        const int result = ::sqlite3_step(statement_.get());
        if (result != SQLITE_ROW && result != SQLITE_DONE) fail(database_);
        return result == SQLITE_ROW;
    }

    std::string text(int column) const {
        const auto* const bytes = static_cast<const char*>(::sqlite3_column_blob(statement_.get(), column));
        const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement_.get(), column));
        return bytes ? std::string{bytes, size} : std::string{};
    }
    std::int64_t number(int column) const { return ::sqlite3_column_int64(statement_.get(), column); }

private:
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const noexcept { ::sqlite3_finalize(statement); }
    };

    void check(int result) {
        if (result != SQLITE_OK) fail(database_);
    }

    sqlite3& database_;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_{};
    int bound_ = 0;
};

void run(sqlite3& database, std::string_view sql) {
    (void)Statement{database, sql}.step();
}

/// A transaction that is rolled back unless it is committed. With IMMEDIATE it is the only writer from its
/// first statement on, so that nothing it has read changes before it writes.
class Transaction {
public:
    explicit Transaction(sqlite3& database) : database_(database) { run(database_, "BEGIN IMMEDIATE"); }
    ~Transaction() {
        if (::sqlite3_get_autocommit(&database_) == 0)
            (void)::sqlite3_exec(&database_, "ROLLBACK", nullptr, nullptr, nullptr);
    }
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    void commit() { run(database_, "COMMIT"); }

private:
    sqlite3& database_;
};

std::int64_t checked(std::uint64_t fencing_token) {
    if (fencing_token == 0)
        throw std::invalid_argument(
            "Store: fencing_token is 0; it must come from a lock with LockOptions::fencing");
    if (fencing_token > std::numeric_limits<std::int64_t>::max())
        throw std::invalid_argument("Store: fencing_token is " + std::to_string(fencing_token) +
                                    "; it must be less than 2^63");
    return static_cast<std::int64_t>(fencing_token);
}

/// Returns 0 before the first fenced access.
std::int64_t newest(sqlite3& database, std::string_view row) {
    Statement statement{database, "SELECT newest_fencing_token FROM rows WHERE row = ?"};
    return statement.bind(row).step() ? statement.number(0) : 0;
}

/// Keeps the existing content. The content of a new row is NULL.
void remember(sqlite3& database, std::string_view row, std::int64_t fencing_token) {
    Statement{database,
              "INSERT INTO rows (row, newest_fencing_token) VALUES (?, ?) "
              "ON CONFLICT (row) DO UPDATE SET newest_fencing_token = excluded.newest_fencing_token"}
        .bind(row)
        .bind(fencing_token)
        .step();
}

void put(sqlite3& database, std::string_view row, std::string_view content) {
    Statement{database,
              "INSERT INTO rows (row, content, newest_fencing_token) VALUES (?, ?, 0) "
              "ON CONFLICT (row) DO UPDATE SET content = excluded.content"}
        .bind(row)
        .bind(content)
        .step();
}

std::optional<std::string> get(sqlite3& database, std::string_view row) {
    Statement statement{database, "SELECT content FROM rows WHERE row = ? AND content IS NOT NULL"};
    if (!statement.bind(row).step()) return std::nullopt;
    return statement.text(0);
}

/// The common part of a read and a write: calls `access` if the token is not older than the newest one.
template <class Access>
Answer fenced(sqlite3& database, std::string_view row, std::uint64_t fencing_token, Access access) {
    const auto shown = checked(fencing_token);
    Transaction transaction{database};
    const auto seen = newest(database, row);
    if (shown < seen) return {.accepted = false, .newest_fencing_token = static_cast<std::uint64_t>(seen)};
    remember(database, row, shown);
    Answer answer{.accepted = true, .newest_fencing_token = fencing_token};
    access(answer);
    transaction.commit();
    return answer;
}

}  // namespace

void Store::Close::operator()(sqlite3* database) const noexcept {
    ::sqlite3_close(database);
}

Store::Store(const std::filesystem::path& file) {
    sqlite3* database = nullptr;
    const int result =
        ::sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    database_.reset(database);
    if (database == nullptr) throw std::bad_alloc{};
    if (result != SQLITE_OK)
        throw std::runtime_error("store " + file.string() + ": " + ::sqlite3_errmsg(database));
    // If a file is not writable, SQLite opens it read-only, and would report this only at the first write.
    if (::sqlite3_db_readonly(database, "main") != 0)
        throw std::runtime_error("store " + file.string() + ": the file is not writable");
    ::sqlite3_busy_timeout(database, busy_timeout_in_ms);
    run(*database, "PRAGMA synchronous = FULL");  // on disk before write() returns
    run(*database,
        "CREATE TABLE IF NOT EXISTS rows (row TEXT PRIMARY KEY, content TEXT, "
        "newest_fencing_token INTEGER NOT NULL)");
}

Answer Store::read(std::string_view row, std::uint64_t fencing_token) {
    return fenced(*database_, row, fencing_token,
                  [&](Answer& answer) { answer.content = get(*database_, row); });
}

Answer Store::write(std::string_view row, std::string_view content, std::uint64_t fencing_token) {
    return fenced(*database_, row, fencing_token, [&](Answer&) { put(*database_, row, content); });
}

std::optional<std::string> Store::read_unfenced(std::string_view row) {
    return get(*database_, row);
}

void Store::write_unfenced(std::string_view row, std::string_view content) {
    put(*database_, row, content);
}

}  // namespace fenced_store
