// Chooses the form in which a command of a round is sent: a plain Redis command or a script, with its keys
// and arguments. The form depends on the command and on the server that receives it.
#pragma once

#include <redlock/nodes.hpp>

#include "scripts.hpp"
#include "verbs.hpp"

#include <chrono>

namespace redlock::detail {

/// The properties of the server on which the form of a command depends.
struct Recipient {
    std::chrono::milliseconds quarantine{0};  ///< see NodesOptions::quarantine
    /// True if the Redis user of this client may use the queues in which clients wait for a resource.
    bool allows_queue = true;

    bool has_quarantine() const noexcept { return quarantine > quarantine.zero(); }
};

/// Returns true if the client must know the run id of the server before it sends the command, because one
/// server with two addresses must not have two votes (rule D8 in docs/rules.md).
inline bool needs_run_id(const Command& command, const Recipient& recipient) noexcept {
    const auto& verb = properties_of(command.verb);
    return verb.counts || (recipient.has_quarantine() && verb.is_declined_in_quarantine());
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
                                     (recipient.has_quarantine() && verb.is_declined_in_quarantine());
    const bool simple = verb.simple && command.resources.size() == 1 && !concerns_other_keys;
    return simple ? *verb.simple : *verb.general;
}

/// Returns the script that executes the command, or null for a plain SET.
inline const Script* script_of(const Command& command, const Recipient& recipient) noexcept {
    return form_of(command, recipient).script;
}

}  // namespace redlock::detail
