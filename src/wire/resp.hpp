// The words of a command in RESP, the protocol of Redis. Nothing here allocates memory, apart from the buffer
// to which a command is appended.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace redlock::detail {

/// A word of a command. It may consist of several parts, so that a name of a key that is put together needs
/// no memory of its own.
class Word {
public:
    // NOLINTNEXTLINE(google-explicit-constructor): a text is a word
    constexpr Word(std::string_view text) noexcept : parts_{text} {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    constexpr Word(const char* text) noexcept : parts_{text} {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    Word(const std::string& text) noexcept : parts_{text} {}
    constexpr Word(std::string_view a, std::string_view b, std::string_view c, std::string_view d) noexcept
        : parts_{a, b, c, d} {}

    constexpr std::size_t size() const noexcept {
        std::size_t result = 0;
        for (const auto part : parts_) result += part.size();
        return result;
    }
    char* copy_to(char* to) const {
        for (const auto part : parts_) to = std::copy(part.begin(), part.end(), to);
        return to;
    }
    std::string text() const {
        std::string result;
        for (const auto part : parts_) result += part;
        return result;
    }

private:
    std::array<std::string_view, 4> parts_{};
};

/// A number as text, in a buffer of its own, so that no memory is allocated.
class Digits {
public:
    explicit Digits(long long value) noexcept
        : length_(std::to_chars(text_.data(), text_.data() + text_.size(), value).ptr - text_.data()) {}
    std::string_view view() const noexcept { return {text_.data(), static_cast<std::size_t>(length_)}; }

private:
    std::array<char, 20> text_{};
    std::ptrdiff_t length_;
};

/// Appends a command. `for_each_word(visit)` calls `visit` with each word of the command. It is called twice:
/// first to learn how long the command can be, then to write it. The buffer grows only once, because this
/// function runs for every node of every round.
template <class ForEachWord>
void append_words(std::string& out, ForEachWord for_each_word) {
    constexpr std::size_t longest_header =
        1 + 20 + 2;  // "*6\r\n": a kind, at most 20 digits, the end of the line
    const auto write_header = [](char* to, char kind, std::size_t length) {
        *to++ = kind;
        to = std::to_chars(to, to + 20, length).ptr;
        *to++ = '\r';
        *to++ = '\n';
        return to;
    };
    std::size_t count = 0;
    auto room = longest_header;
    for_each_word([&](const Word& word) {
        ++count;
        room += longest_header + word.size() + 2;
    });
    const auto before = out.size();
    out.resize(before + room);
    char* to = write_header(out.data() + before, '*', count);
    for_each_word([&](const Word& word) {
        to = word.copy_to(write_header(to, '$', word.size()));
        *to++ = '\r';
        *to++ = '\n';
    });
    out.resize(static_cast<std::size_t>(to - out.data()));
}

/// Appends a command of plain words, such as AUTH or SELECT.
inline void append(std::string& out, std::span<const Word> words) {
    append_words(out, [words](auto visit) {
        for (const auto& word : words) visit(word);
    });
}
inline void append(std::string& out, std::initializer_list<Word> words) {
    append(out, std::span{words.begin(), words.size()});
}

}  // namespace redlock::detail
