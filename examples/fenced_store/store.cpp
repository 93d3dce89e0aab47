#include "store.hpp"

#include "statement.hpp"

#include <limits>
#include <new>
#include <stdexcept>

namespace fenced_store {

namespace {

void run(sqlite3& database, std::string_view sql) {
    (void)Statement{database, sql}.step();
}

/// Undone unless committed. IMMEDIATE: it is the only writer from its first statement on, so what it reads is
/// still so when it writes.
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
            "Store::write: fencing_token is 0; it must come from a lock with LockOptions::fencing");
    if (fencing_token > std::numeric_limits<std::int64_t>::max())
        throw std::invalid_argument("Store::write: fencing_token is " + std::to_string(fencing_token) +
                                    "; it must be less than 2^63");
    return static_cast<std::int64_t>(fencing_token);
}

/// 0 before the first fenced write.
std::int64_t newest(sqlite3& database, std::string_view row) {
    Statement statement{database, "SELECT newest_fencing_token FROM rows WHERE row = ?"};
    return statement.bind(row).step() ? statement.number(0) : 0;
}

void put(sqlite3& database, std::string_view row, std::string_view content, std::int64_t fencing_token) {
    Statement{database,
              "INSERT INTO rows (row, content, newest_fencing_token) VALUES (?, ?, ?) "
              "ON CONFLICT (row) DO UPDATE SET content = excluded.content, "
              "newest_fencing_token = excluded.newest_fencing_token"}
        .bind(row)
        .bind(content)
        .bind(fencing_token)
        .step();
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
    // What cannot be opened for writing SQLite opens for reading, and would say so at the first write only.
    if (::sqlite3_db_readonly(database, "main") != 0)
        throw std::runtime_error("store " + file.string() + ": the file is not writable");
    ::sqlite3_busy_timeout(database, patience_in_ms);
    run(*database, "PRAGMA synchronous = FULL");  // on disk before write() returns
    run(*database,
        "CREATE TABLE IF NOT EXISTS rows (row TEXT PRIMARY KEY, content TEXT NOT NULL, "
        "newest_fencing_token INTEGER NOT NULL)");
}

std::optional<std::string> Store::read(std::string_view row) {
    Statement statement{*database_, "SELECT content FROM rows WHERE row = ?"};
    if (!statement.bind(row).step()) return std::nullopt;
    return statement.text(0);
}

Answer Store::write(std::string_view row, std::string_view content, std::uint64_t fencing_token) {
    const auto shown = checked(fencing_token);
    Transaction transaction{*database_};
    const auto seen = newest(*database_, row);
    if (shown < seen) return {.accepted = false, .newest_fencing_token = static_cast<std::uint64_t>(seen)};
    put(*database_, row, content, shown);
    transaction.commit();
    return {.accepted = true, .newest_fencing_token = fencing_token};
}

void Store::write_unfenced(std::string_view row, std::string_view content) {
    Transaction transaction{*database_};
    put(*database_, row, content, newest(*database_, row));
    transaction.commit();
}

}  // namespace fenced_store
