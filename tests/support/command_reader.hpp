// Splits the bytes that a client sends into commands. Every Redis client sends a command as an array of
// strings.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::support {

class CommandReader {
public:
    using Words = std::vector<std::string>;

    /// Longer words are truncated to `longest_word` bytes.
    explicit CommandReader(std::size_t longest_word = 64) : longest_word_(longest_word) {}

    /// Takes the next bytes, and calls `seen(words)` for each command that they complete. If the bytes are
    /// not RESP, for example TLS, it ignores them and all later ones.
    template <class Seen>
    void take(std::string_view bytes, Seen seen) {
        while (!bytes.empty() && !blind_) {
            if (inside_ > 0)
                take_word(bytes);
            else
                take_line(bytes);
            if (words_left_ > 0 || words_.empty()) continue;
            seen(std::exchange(words_, {}));
        }
    }

    /// Returns true if it has seen bytes that are not RESP.
    bool blind() const noexcept { return blind_; }

private:
    /// Takes a part of a word, or of the CR LF after it.
    void take_word(std::string_view& bytes) {
        const auto length = std::min(inside_, bytes.size());
        const auto kept = inside_ > 2 ? std::min(length, inside_ - 2) : 0;
        auto& word = words_.back();
        word += bytes.substr(0, std::min(kept, longest_word_ - std::min(longest_word_, word.size())));
        bytes.remove_prefix(length);
        inside_ -= length;
        if (inside_ == 0) --words_left_;
    }

    /// Takes a part of a line such as `*3` or `$42`.
    void take_line(std::string_view& bytes) {
        const auto end = bytes.find('\n');
        line_ += bytes.substr(0, end);
        bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
        if (line_.empty() || line_.size() > 32 || line_.front() != (words_left_ > 0 ? '$' : '*'))
            blind_ = true;
        if (end == bytes.npos || blind_) return;
        std::size_t number = 0;
        std::from_chars(line_.data() + 1, line_.data() + line_.size(), number);
        if (words_left_ == 0) {
            words_left_ = number;
        } else {
            words_.emplace_back();
            inside_ = number + 2;
        }
        line_.clear();
    }

    std::size_t longest_word_;
    std::string line_{};
    Words words_{};
    std::size_t words_left_ = 0;  // of the current command, including the current word
    std::size_t inside_ = 0;      // bytes of the current word still to come, with its CR LF
    bool blind_ = false;
};

}  // namespace redlock::support
