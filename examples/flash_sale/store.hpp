// The stock on sale: a number in a plain file that nothing protects.
#pragma once

#include <filesystem>

namespace flash_sale {

/// Selling is read, think, write back, as with any record of which two programs have a copy. The number has
/// a fixed width and is written at once, so what is lost without a lock is sales, not digits.
class Store {
public:
    /// The file must exist; see fill().
    explicit Store(const std::filesystem::path& file);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    /// Makes the file, with so many items in it.
    static void fill(const std::filesystem::path& file, int stock);

    int stock() const;
    void set_stock(int stock);

private:
    int descriptor_;
};

}  // namespace flash_sale
