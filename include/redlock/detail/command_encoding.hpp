// What goes over the wire: the commands of a round in RESP, the protocol of Redis. A command has one or
// several resources (the names that are locked). Depending on the server, it is a plain SET or a script.
#pragma once

#include <redlock/detail/quarantine.hpp>
#include <redlock/detail/scripts.hpp>
#include <redlock/detail/verbs.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace redlock::detail {

/// The properties of the server on which the form of a command depends.
struct Recipient {
    std::chrono::milliseconds quarantine{0};  ///< see NodesOptions::quarantine
    /// True if the Redis user of this client may use the queues in which clients wait for a resource.
    bool allows_queue = true;

    bool has_quarantine() const noexcept { return quarantine > quarantine.zero(); }
};

/// How long a queue is kept after a waiter has last used it.
inline constexpr std::chrono::milliseconds queue_expiry{5'000};

/// How a script is named on the wire.
enum class ScriptForm : bool {
    whole,   ///< EVAL with the text: works everywhere
    by_sha1  ///< EVALSHA: shorter, answered NOSCRIPT by a server that does not know it
};

/// Returns true if the client must know the run id of the server before it sends the command. The run id
/// identifies the server. The command relies on what this server remembers, so one server with two addresses
/// must not have two votes.
inline bool needs_run_id(const Command& command, const Recipient& recipient) noexcept {
    const auto& verb = properties_of(command.verb);
    return verb.counts || (verb.is_vote && recipient.has_quarantine());
}

/// Returns true if the command reads or changes the queue of waiters at `recipient`. A release with a
/// remaining minimum hold time does not use the queue. It wakes nobody, because the resource stays
/// unavailable.
inline bool uses_queue(const Command& command, const Recipient& recipient) noexcept {
    if (!recipient.allows_queue || command.hold_remaining > std::chrono::milliseconds::zero()) return false;
    switch (properties_of(command.verb).queue) {
        case QueueUse::never: return false;
        case QueueUse::with_a_ticket: return command.queue && !command.queue->ticket.empty();
        case QueueUse::with_terms: return command.queue != nullptr;
        case QueueUse::always: return true;
    }
    return false;
}

/// Returns the form of the command for `recipient`.
inline const Form& form_of(const Command& command, const Recipient& recipient) noexcept {
    using namespace std::chrono_literals;
    const auto& verb = properties_of(command.verb);
    if (command.shared && verb.reader) return *verb.reader;
    const bool concerns_other_keys = uses_queue(command, recipient) || command.hold_remaining > 0ms ||
                                     (verb.is_vote && recipient.has_quarantine());
    const bool simple = verb.simple && command.resources.size() == 1 && !concerns_other_keys;
    return simple ? *verb.simple : *verb.general;
}

/// Returns the script that carries out the command, or null for a plain SET.
inline const Script* script_of(const Command& command, const Recipient& recipient) noexcept {
    return form_of(command, recipient).script;
}

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

/// Returns true if the name has a part in braces, the hash tag. Redis Cluster hashes only this part.
constexpr bool has_hash_tag(std::string_view resource) noexcept {
    const auto open = resource.find('{');
    const auto close = resource.find('}', open == resource.npos ? open : open + 1);
    return close != resource.npos && close > open + 1;
}

/// Returns the name of a key beside `resource`. It has the hash tag of the resource, so that both stay
/// together:
///
///     resource      | name for the suffix ":queue"
///     --------------+------------------------------------------------------------------
///     orders        | {orders}:queue
///     orders:{42}   | orders:{42}:queue
///     {x}           | {x}:tag-queue, because {x}:queue is the key beside the resource x
constexpr Word key_beside(std::string_view resource, std::string_view suffix) noexcept {
    if (!has_hash_tag(resource)) return {"{", resource, "}", suffix};
    const bool in_braces = resource.front() == '{' && resource.back() == '}' &&
                           !has_hash_tag(resource.substr(1, resource.size() - 2));
    return in_braces ? Word{resource, ":tag-", suffix.substr(1), ""} : Word{resource, suffix, "", ""};
}

/// Returns the key of this kind that belongs to `resource`.
constexpr Word key_of(KeyKind kind, std::string_view resource) noexcept {
    switch (kind) {
        case KeyKind::queue: return key_beside(resource, ":queue");
        case KeyKind::description: return key_beside(resource, ":holder");
        case KeyKind::readers: return key_beside(resource, ":readers");
        case KeyKind::counter: return key_beside(resource, ":fence");
        case KeyKind::resource:
        case KeyKind::marker:
        case KeyKind::none: break;
    }
    return resource;
}

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

/// The words of a command that is sent as a script, in their order.
class ScriptCall {
public:
    ScriptCall(const Form& form, const Command& command, const Recipient& recipient, ScriptForm by) noexcept
        : form_(form), command_(command), recipient_(recipient), by_(by) {
        for (const auto kind : form.keys) keys_ += has(kind) ? count_of(kind) : 0;
    }

    template <class Visit>
    void operator()(Visit visit) const {
        const auto& script = *form_.script;
        visit(by_ == ScriptForm::whole ? "EVAL" : "EVALSHA");
        visit(by_ == ScriptForm::whole ? script.text : script.sha1);
        visit(Digits{static_cast<long long>(keys_)}.view());
        for (const auto kind : form_.keys) {
            if (!has(kind)) continue;
            if (kind == KeyKind::marker) {
                visit(marker_key);
                continue;
            }
            for (const auto& resource : command_.resources) visit(key_of(kind, resource));
        }
        for (const auto argument : form_.arguments) visit_argument(argument, visit);
    }

private:
    bool has(KeyKind kind) const noexcept {
        if (kind == KeyKind::queue) return uses_queue(command_, recipient_);
        if (kind == KeyKind::marker) return recipient_.has_quarantine();
        return kind != KeyKind::none;
    }

    std::size_t count_of(KeyKind kind) const noexcept {
        return kind == KeyKind::marker ? 1 : command_.resources.size();
    }

    template <class Visit>
    void visit_argument(Argument argument, Visit& visit) const {
        const auto visit_number = [&](long long number) { visit(Digits{number}.view()); };
        const auto visit_positive = [&](long long number) { number > 0 ? visit_number(number) : visit(""); };
        const auto* const queue = uses_queue(command_, recipient_) ? command_.queue : nullptr;
        switch (argument) {
            case Argument::none: return;
            case Argument::owner: return visit(command_.owner);
            case Argument::resource_count:
                return visit_number(static_cast<long long>(command_.resources.size()));
            case Argument::ttl: return visit_number(command_.ttl.count());
            case Argument::token: return visit_number(static_cast<long long>(command_.fence));
            case Argument::hold_remaining: return visit_positive(command_.hold_remaining.count());
            case Argument::ticket: return visit(queue ? queue->ticket : "");
            case Argument::reservation_ttl: return visit_positive(queue ? queue->reservation_ttl.count() : 0);
            case Argument::waited: return visit_number(queue ? queue->waited.count() : 0);
            case Argument::queue_expiry: return visit_number(queue_expiry.count());
            case Argument::may_take: return visit(queue && queue->may_take ? "1" : "0");
            case Argument::former_ticket: return visit(queue ? queue->former : "");
            case Argument::may_wake: return visit(queue && !queue->repeated ? "1" : "");
            case Argument::description: return visit(command_.description);
            case Argument::counter_expiry:
                return visit_positive(has_counters() ? counters_expiry(recipient_.quarantine).count() : 0);
            case Argument::quarantine:
                return visit_positive(std::chrono::microseconds{recipient_.quarantine}.count());
        }
    }

    bool has_counters() const noexcept { return properties_of(command_.verb).counts; }

    const Form& form_;
    const Command& command_;
    const Recipient& recipient_;
    const ScriptForm by_;
    std::size_t keys_ = 0;
};

/// Appends `command` to `out`.
inline void append(std::string& out, const Command& command, const Recipient& recipient, ScriptForm by) {
    const auto& form = form_of(command, recipient);
    if (form.script) return append_words(out, ScriptCall{form, command, recipient, by});
    const Digits ttl{command.ttl.count()};
    append(out, {"SET", command.resources.front(), command.owner, "NX", "PX", ttl.view()});
}

}  // namespace redlock::detail
