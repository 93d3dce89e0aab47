// What goes over the wire: the commands of a round in RESP.
#pragma once

#include <redlock/detail/scripts.hpp>
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
#include <vector>

namespace redlock::detail {

/// What a command depends on beside itself: the server that it is sent to.
struct Recipient {
    std::chrono::milliseconds quarantine{0};  ///< see NodesOptions::quarantine
    bool allows_queue = true;                 ///< our user may use the keys of queues there
};

/// How long a queue is kept that nobody looks at.
inline constexpr std::chrono::milliseconds queue_expiry{5'000};
inline constexpr std::string_view queue_suffix = ":queue";
inline constexpr std::string_view readers_suffix = ":readers";
/// Of the key beside a resource with what its holder says of itself.
inline constexpr std::string_view note_suffix = ":holder";

/// How a script is named on the wire.
enum class ScriptForm : bool {
    whole,   ///< EVAL with the text: works everywhere
    by_sha1  ///< EVALSHA: shorter, answered NOSCRIPT by a server that does not know it
};

/// Whether the vote comes with a count, or raises it.
inline bool counts(const Command& command) noexcept {
    return command.verb == Verb::set_and_count || command.verb == Verb::raise_count;
}

/// Whether the answer is a vote: a node that may not have one gives none.
inline bool is_vote(const Command& command) noexcept {
    return acquires(command.verb) || command.verb == Verb::compare_and_expire || counts(command);
}

/// Whether `command` relies on what a server remembers of itself: a server that has two votes would be worse.
inline bool needs_run_id(const Command& command, const Recipient& recipient) noexcept {
    using namespace std::chrono_literals;
    return counts(command) || (recipient.quarantine > 0ms && is_vote(command));
}

/// Whether `command` has a form for waiters at `recipient`, or asks for them.
inline bool uses_queue(const Command& command, const Recipient& recipient) noexcept {
    if (!recipient.allows_queue) return false;
    if (command.verb == Verb::query) return command.resources.size() == 1;
    if (!command.queue) return false;
    return command.verb == Verb::compare_and_delete || !command.queue->ticket.empty();
}

/// The script that carries out the command of a reader.
inline const Script* script_of_reader(Verb verb) noexcept {
    switch (verb) {
        case Verb::set_if_absent: return &reader_acquire;
        case Verb::compare_and_expire: return &reader_extend;
        case Verb::compare_and_delete: return &reader_release;
        case Verb::set_and_count: return &reader_acquire_and_count;
        case Verb::raise_count: return &reader_raise_count;
        case Verb::enter_queue:  // of these, readers have none
        case Verb::note_holder:
        case Verb::query: break;
    }
    return nullptr;
}

inline const Script* script_of_release(const Command& command, bool queue) noexcept {
    if (command.rest > std::chrono::milliseconds::zero()) return &hold_remaining;
    if (queue) return &delete_and_wake;
    return command.resources.size() == 1 ? &compare_and_delete : &delete_all;
}

/// The script that carries out `command`; none for a plain SET.
inline const Script* script_of(const Command& command, const Recipient& recipient) noexcept {
    using namespace std::chrono_literals;
    const bool one = command.resources.size() == 1;
    const bool simple = one && recipient.quarantine == 0ms;
    const bool queue = uses_queue(command, recipient);
    if (command.shared) return script_of_reader(command.verb);
    switch (command.verb) {
        case Verb::set_if_absent: return queue ? &leave_and_set : simple ? nullptr : &set_all;
        case Verb::compare_and_expire: return simple ? &compare_and_expire : &expire_all;
        case Verb::compare_and_delete: return script_of_release(command, queue);
        case Verb::set_and_count: return queue ? &leave_and_count : &set_and_count;
        case Verb::raise_count: return &raise_count;
        case Verb::enter_queue: return &enter_queue;
        case Verb::note_holder: return &describe_holder;
        case Verb::query: return one ? &query : &which_exist;
    }
    return nullptr;
}

/// A word of a command, which may consist of several parts, so that the name of a key needs no memory.
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

/// Whether the name has a part in braces, the hash tag: Redis Cluster hashes only this part.
constexpr bool has_hash_tag(std::string_view resource) noexcept {
    const auto open = resource.find('{');
    const auto close = resource.find('}', open == resource.npos ? open : open + 1);
    return close != resource.npos && close > open + 1;
}

/// Returns the name of a key beside `resource`, which has the hash tag of the resource, so that both stay
/// together. A resource without a hash tag gets braces. A resource that already looks like one in such
/// braces, for example `{x}`, has keys of its own, because otherwise they would be those of `x`.
constexpr Word key_beside(std::string_view resource, std::string_view suffix) noexcept {
    if (!has_hash_tag(resource)) return {"{", resource, "}", suffix};
    const bool in_braces = resource.front() == '{' && resource.back() == '}' &&
                           !has_hash_tag(resource.substr(1, resource.size() - 2));
    return in_braces ? Word{resource, ":tag-", suffix.substr(1), ""} : Word{resource, suffix, "", ""};
}

/// The key that counts the holders of `resource`.
constexpr Word counter_of(std::string_view resource) noexcept {
    return key_beside(resource, ":fence");
}

/// The key of the queue of those that wait for `resource`.
constexpr Word queue_of(std::string_view resource) noexcept {
    return key_beside(resource, queue_suffix);
}

/// The key of the set of the readers of `resource`.
constexpr Word readers_of(std::string_view resource) noexcept {
    return key_beside(resource, readers_suffix);
}

/// The key that says since when a server has had its data, in microseconds of its wall clock.
inline constexpr std::string_view marker = "redlock:since";

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

/// Appends a command of plain words, such as AUTH or SELECT.
inline void append(std::string& out, std::span<const Word> words) {
    // Room for the longest there can be, written in one go, the rest cut off: this runs for every node of
    // every round. "*6\r\n", "$3\r\n": at most a kind, 20 digits and the end of the line.
    constexpr std::size_t longest_header = 1 + 20 + 2;
    const auto write_header = [](char* to, char kind, std::size_t length) {
        *to++ = kind;
        to = std::to_chars(to, to + 20, length).ptr;
        *to++ = '\r';
        *to++ = '\n';
        return to;
    };
    auto room = longest_header;
    for (const auto& word : words) room += longest_header + word.size() + 2;
    const auto before = out.size();
    out.resize(before + room);
    char* to = write_header(out.data() + before, '*', words.size());
    for (const auto& word : words) {
        to = word.copy_to(write_header(to, '$', word.size()));
        *to++ = '\r';
        *to++ = '\n';
    }
    out.resize(static_cast<std::size_t>(to - out.data()));
}
inline void append(std::string& out, std::initializer_list<Word> words) {
    append(out, std::span{words.begin(), words.size()});
}

/// Longer than a node can be without a vote, and its clock be wrong: a count must not be forgotten while
/// smaller ones can still be given.
inline std::chrono::milliseconds counters_expiry(const Recipient& recipient) noexcept {
    using namespace std::chrono_literals;
    return 24h + 2 * recipient.quarantine;
}

/// The general form, for several resources, a count, a quarantine, a queue, readers: keys, then arguments, as
/// the .lua files say.
inline void append_script(std::string& out, const Command& command, const Recipient& recipient,
                          std::string_view verb, std::string_view body) {
    using namespace std::chrono_literals;
    const auto resources = command.resources;
    const bool votes = is_vote(command);
    const auto* const queue = uses_queue(command, recipient) ? command.queue : nullptr;
    std::vector<Word> own;
    if (queue)
        for (const auto& resource : resources) own.push_back(queue_of(resource));
    if (command.shared) own.push_back(readers_of(resources.front()));
    if (counts(command))
        for (const auto& resource : resources) own.push_back(counter_of(resource));
    if (votes && recipient.quarantine > 0ms) own.emplace_back(marker);

    const auto amount = command.verb == Verb::raise_count ? static_cast<long long>(command.fence)
                                                          : static_cast<long long>(command.ttl.count());
    const Digits keys{static_cast<long long>(resources.size() + own.size())};
    const Digits number{amount};
    const Digits size{static_cast<long long>(resources.size())};
    const Digits keep{counters_expiry(recipient).count()};
    const Digits quarantine{std::chrono::microseconds{recipient.quarantine}.count()};
    std::vector<Word> words{verb, body, keys.view()};
    words.insert(words.end(), resources.begin(), resources.end());
    words.insert(words.end(), own.begin(), own.end());
    words.emplace_back(command.owner);
    if (queue) words.emplace_back(queue->ticket);
    const Digits rest{command.rest.count()};
    if (command.rest > 0ms) words.emplace_back(rest.view());
    if (votes) words.insert(words.end(), {number.view(), size.view()});
    if (counts(command)) words.emplace_back(keep.view());
    if (votes) words.emplace_back(quarantine.view());
    const Digits patience{queue ? queue->patience.count() : 0};
    if (queue && !votes) words.insert(words.end(), {patience.view(), queue->repeated ? "0" : "1"});
    append(out, words);
}

/// The release of one resource that wakes the next waiter.
inline void append_delete_and_wake(std::string& out, const Command& command, const QueueTerms& queue,
                                   std::string_view verb, std::string_view body) {
    const std::string_view resource = command.resources.front();
    append(out, {verb, body, "2", resource, queue_of(resource), command.owner, queue.ticket,
                 Digits{queue.patience.count()}.view(), queue.repeated ? "0" : "1"});
}

/// The queue lives on for as long as any waiter gives a sign of life.
inline void append_enter_queue(std::string& out, const Command& command, const QueueTerms& queue,
                               std::string_view verb, std::string_view body) {
    const std::string_view resource = command.resources.front();
    append(out, {verb, body, "2", resource, queue_of(resource), queue.ticket,
                 Digits{queue.patience.count()}.view(), Digits{queue.waited.count()}.view(),
                 Digits{queue_expiry.count()}.view(), queue.may_take ? "1" : "0"});
}

/// What stands beside several resources, or is to be read.
inline void append_note_or_query(std::string& out, const Command& command, const Recipient& recipient,
                                 std::string_view verb, std::string_view body) {
    std::vector<Word> beside;
    const auto& resource = command.resources.front();
    if (command.verb == Verb::note_holder)
        for (const auto& it : command.resources) beside.push_back(key_beside(it, note_suffix));
    else if (uses_queue(command, recipient))
        beside = {queue_of(resource), key_beside(resource, note_suffix), readers_of(resource),
                  counter_of(resource)};
    const Digits keys{static_cast<long long>(command.resources.size() + beside.size())};
    std::vector<Word> words{verb, body, keys.view()};
    words.insert(words.end(), command.resources.begin(), command.resources.end());
    words.insert(words.end(), beside.begin(), beside.end());
    if (command.verb == Verb::note_holder) words.insert(words.end(), {command.owner, command.note});
    append(out, words);
}

/// Appends `command` to `out`.
inline void append(std::string& out, const Command& command, const Recipient& recipient, ScriptForm form) {
    const auto* const script = script_of(command, recipient);
    const std::string_view resource = command.resources.front();
    const Digits ttl{command.ttl.count()};
    if (!script) return append(out, {"SET", resource, command.owner, "NX", "PX", ttl.view()});
    const auto verb = form == ScriptForm::whole ? "EVAL" : "EVALSHA";
    const auto body = form == ScriptForm::whole ? script->text : script->sha1;
    if (script == &compare_and_expire)
        append(out, {verb, body, "1", resource, command.owner, ttl.view()});
    else if (script == &compare_and_delete)
        append(out, {verb, body, "1", resource, command.owner});
    else if (command.queue && script == &delete_and_wake && command.resources.size() == 1)
        append_delete_and_wake(out, command, *command.queue, verb, body);
    else if (command.queue && script == &enter_queue)
        append_enter_queue(out, command, *command.queue, verb, body);
    else if (command.verb == Verb::note_holder || command.verb == Verb::query)
        append_note_or_query(out, command, recipient, verb, body);
    else
        append_script(out, command, recipient, verb, body);
}

}  // namespace redlock::detail
