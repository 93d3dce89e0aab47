#include "store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

namespace flash_sale {

namespace {

constexpr std::size_t digits = 8;  // and a newline

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Store::Store(const std::filesystem::path& file) : descriptor_(::open(file.c_str(), O_RDWR | O_CLOEXEC)) {
    if (descriptor_ < 0) fail(file.c_str());
}

Store::~Store() {
    ::close(descriptor_);
}

void Store::fill(const std::filesystem::path& file, int stock) {
    std::ofstream created{file};
    Store{file}.set_stock(stock);
}

int Store::stock() const {
    std::array<char, digits + 1> text{};
    int stock = 0;
    if (::pread(descriptor_, text.data(), text.size(), 0) != std::ssize(text)) fail("read the stock");
    if (std::from_chars(text.data(), text.data() + digits, stock).ec != std::errc{})
        throw std::runtime_error("the stock is no number");
    return stock;
}

// NOLINTNEXTLINE(readability-make-member-function-const): it changes what the object stands for
void Store::set_stock(int stock) {
    auto text = std::to_string(stock) + '\n';
    text.insert(0, digits + 1 - text.size(), '0');
    if (::pwrite(descriptor_, text.data(), text.size(), 0) != std::ssize(text)) fail("write the stock");
}

}  // namespace flash_sale
