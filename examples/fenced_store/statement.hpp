// One SQL statement: prepared, its parameters bound in order, stepped through row by row.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fenced_store {

/// Throws std::runtime_error with the database's file and SQLite's own words.
[[noreturn]] inline void fail(sqlite3& database) {
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
        const auto* const bytes = text.empty() ? "" : text.data();  // null would be NULL
        check(::sqlite3_bind_text64(statement_.get(), ++bound_, bytes, text.size(), SQLITE_TRANSIENT,
                                    SQLITE_UTF8));
        return *this;
    }
    Statement& bind(std::int64_t number) {
        check(::sqlite3_bind_int64(statement_.get(), ++bound_, number));
        return *this;
    }

    /// Whether there is a row; of a statement that changes something there is none.
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

}  // namespace fenced_store
