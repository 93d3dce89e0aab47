// What the tests of the encoder share: a table has a row for each form in which a command is sent, and the
// words of this form are written by hand. The encoder must not be asked for them, because it would repeat its
// own mistakes.
#pragma once

#include "support/command_reader.hpp"
#include "support/redis_reply.hpp"
#include "support/redis_words.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wire/command_encoding.hpp"

namespace redlock::test {

using namespace std::chrono_literals;
using namespace std::string_literals;
using detail::Recipient;
using detail::ScriptForm;
using Words = std::vector<std::string>;

inline const std::string owner = "00112233445566778899aabbccddeeff00112233";
inline const std::string ticket = "redlock:wake:00112233445566778899aabbccddeeff|7";
constexpr auto no_queue = std::nullopt;
const QueueTerms fair{.reservation_ttl = 100ms};
const QueueTerms waiter{.ticket = ticket, .reservation_ttl = 100ms};
constexpr Recipient any_node{};
constexpr Recipient with_quarantine{.quarantine = 1h};
constexpr Recipient without_queues{.allows_queue = false};

/// Words, or a text like support::typed(), in which @owner and @ticket stand for these.
struct Texts : Words {
    Texts() = default;
    Texts(Words words) : Words(std::move(words)) {}          // NOLINT(google-explicit-constructor): of a row
    Texts(const char* text) : Words(support::typed(text)) {  // NOLINT(google-explicit-constructor): of a row
        std::ranges::replace(*this, "@owner", owner);
        std::ranges::replace(*this, "@ticket", ticket);
    }
};

struct Row {
    const char* variant = "";
    Texts resources{};
    Command command{};  ///< its resources, and its queue, are those of the row
    std::optional<QueueTerms> queue{};
    Recipient to{};
    Texts words{};  ///< of a script: those behind EVAL and its text
};

/// The bytes that `row` is sent as. Nodes that get other bytes come before: those of the other form, and
/// those whose user may not use queues.
inline std::string bytes_of(const Row& row, ScriptForm form) {
    auto command = row.command;
    command.resources = row.resources;
    command.queue = row.queue ? &*row.queue : nullptr;
    const auto other_form = form == ScriptForm::whole ? ScriptForm::by_sha1 : ScriptForm::whole;
    std::string bytes;
    detail::CommandForEachNode for_each_node;
    for (const auto& to : {Recipient{row.to.quarantine, false}, row.to})
        for (const auto by : {form, form, other_form, other_form, form, form}) {
            std::string expected;
            detail::append(expected, command, to, by);
            bytes = "before";
            for_each_node.append(bytes, command, to, by);
            EXPECT_EQ(bytes, "before" + expected);
        }
    return bytes.substr("before"s.size());
}

/// The words first, because they can be read when they differ.
inline void expect_bytes(const std::string& bytes, const Words& words) {
    Words sent;
    support::CommandReader{std::string::npos}.take(bytes, [&](const Words& it) { sent = it; });
    EXPECT_EQ(sent, words);
    EXPECT_EQ(bytes, support::to_resp(words));
}

/// Each row is sent as `script`: by its digest and as a whole.
inline void expect_script(const detail::Script& script, std::initializer_list<Row> rows) {
    for (const auto& row : rows) {
        SCOPED_TRACE(row.variant);
        Words by_digest{"EVALSHA", std::string{script.sha1}};
        Words whole{"EVAL", std::string{script.text}};
        for (auto* const words : {&by_digest, &whole})
            words->insert(words->end(), row.words.begin(), row.words.end());
        expect_bytes(bytes_of(row, ScriptForm::by_sha1), by_digest);
        expect_bytes(bytes_of(row, ScriptForm::whole), whole);
    }
}

/// Each row is sent without a script.
inline void expect_no_script(std::initializer_list<Row> rows) {
    for (const auto& row : rows) {
        SCOPED_TRACE(row.variant);
        for (const auto form : {ScriptForm::by_sha1, ScriptForm::whole})
            expect_bytes(bytes_of(row, form), row.words);
    }
}

}  // namespace redlock::test
