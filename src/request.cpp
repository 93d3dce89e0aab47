#include "request.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

namespace redlock::wire {
namespace {

/// A number as text, without the heap.
class Digits {
public:
    explicit Digits(long long value) noexcept
        : length_(std::to_chars(text_.data(), text_.data() + text_.size(), value).ptr - text_.data()) {}
    std::string_view view() const noexcept { return {text_.data(), static_cast<std::size_t>(length_)}; }

private:
    std::array<char, 20> text_{};
    std::ptrdiff_t length_;
};

/// "*6\r\n", "$3\r\n": at most a kind, 20 digits and the end of the line.
constexpr std::size_t longest_header = 1 + 20 + 2;

char* write_header(char* to, char kind, std::size_t length) noexcept {
    *to++ = kind;
    to = std::to_chars(to, to + 20, length).ptr;
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

}  // namespace

void append(std::string& out, std::initializer_list<std::string_view> words) {
    // Room for the longest there can be, written in one go, the rest cut off: this runs for every node of
    // every round.
    auto room = longest_header;
    for (const auto word : words) room += longest_header + word.size() + 2;
    const auto before = out.size();
    out.resize(before + room);
    char* to = write_header(out.data() + before, '*', words.size());
    for (const auto word : words) {
        to = write_header(to, '$', word.size());
        to = std::copy(word.begin(), word.end(), to);
        *to++ = '\r';
        *to++ = '\n';
    }
    out.resize(static_cast<std::size_t>(to - out.data()));
}

const Script* script_of(const Command& command) noexcept {
    if (std::holds_alternative<CompareAndDelete>(command)) return &compare_and_delete;
    if (std::holds_alternative<CompareAndExpire>(command)) return &compare_and_expire;
    return nullptr;
}

std::chrono::milliseconds ttl_of(const Command& command) noexcept {
    if (const auto* set = std::get_if<SetIfAbsent>(&command)) return set->ttl;
    if (const auto* expire = std::get_if<CompareAndExpire>(&command)) return expire->ttl;
    return {};
}

std::string_view owner_of(const Command& command) noexcept {
    return std::visit([](const auto& it) { return it.owner; }, command);
}

void append(std::string& out, const Command& command, ScriptForm form) {
    const auto script = script_of(command);
    const auto verb = form == ScriptForm::whole ? "EVAL" : "EVALSHA";
    const auto body = !script ? std::string_view{} : form == ScriptForm::whole ? script->text : script->sha1;
    if (const auto* set = std::get_if<SetIfAbsent>(&command))
        append(out, {"SET", set->resource, set->owner, "NX", "PX", Digits{set->ttl.count()}.view()});
    else if (const auto* expire = std::get_if<CompareAndExpire>(&command))
        append(out, {verb, body, "1", expire->resource, expire->owner, Digits{expire->ttl.count()}.view()});
    else if (const auto* erase = std::get_if<CompareAndDelete>(&command))
        append(out, {verb, body, "1", erase->resource, erase->owner});
}

}  // namespace redlock::wire
