// What goes over the wire: the commands of a round in RESP, the protocol of Redis. A command has one or
// several resources (the names that are locked). Depending on the server, it is a plain SET or a script.
#pragma once

#include <redlock/nodes.hpp>

#include "command_form.hpp"
#include "key_names.hpp"
#include "resp.hpp"
#include "scripts.hpp"
#include "verbs.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

namespace redlock::detail {

/// How long a queue is kept after a waiter has last used it.
inline constexpr std::chrono::milliseconds queue_expiry{5'000};

/// Returns how long a counter of holders (docs/protocol.md, Fencing tokens) is kept: for longer than a node
/// can be without a vote, because it must not be forgotten while smaller counts can still be given. The day
/// is for clocks that are wrong by some hours.
constexpr std::chrono::milliseconds counters_expiry(std::chrono::milliseconds quarantine) noexcept {
    return std::chrono::hours{24} + 2 * quarantine;
}

/// How a script is named on the wire.
enum class ScriptForm : bool {
    whole,   ///< EVAL with the text: works everywhere
    by_sha1  ///< EVALSHA: shorter, answered NOSCRIPT by a server that does not know it
};

/// Calls `visit` with each word of a command that is sent as a script, in their order.
template <class Visit>
void visit_words(const Form& form, const Command& command, const Recipient& recipient, ScriptForm by,
                 Visit visit) {
    const bool uses_the_queue = uses_queue(command, recipient);
    const bool counts = properties_of(command.verb).counts;
    // Returns the resources of which the command uses the keys of this kind. The marker is used once.
    const auto resources_of = [&](KeyKind kind) {
        const bool is_used = kind == KeyKind::queue     ? uses_the_queue
                             : kind == KeyKind::marker  ? recipient.has_quarantine()
                             : kind == KeyKind::counter ? counts || effect_of(command) != KeyEffect::acquires
                                                        : kind != KeyKind::none;
        const auto keys = kind == KeyKind::marker ? std::size_t{1} : command.resources.size();
        return command.resources.first(is_used ? keys : 0);
    };
    std::size_t keys = 0;
    for (const auto kind : form.keys) keys += resources_of(kind).size();
    visit(by == ScriptForm::whole ? "EVAL" : "EVALSHA");
    visit(by == ScriptForm::whole ? form.script->text : form.script->sha1);
    visit(Digits{static_cast<long long>(keys)}.view());
    for (const auto kind : form.keys)
        for (const auto& resource : resources_of(kind)) visit(key_of(kind, resource));

    const auto* const queue = uses_the_queue ? command.queue : nullptr;
    const auto visit_number = [&](long long number) { visit(Digits{number}.view()); };
    const auto visit_positive = [&](long long number) { number > 0 ? visit_number(number) : visit(""); };
    const auto visit_argument = [&](Argument argument) {
        switch (argument) {
            case Argument::none: return;
            case Argument::owner: return visit(command.owner);
            case Argument::resource_count:
                return visit_number(static_cast<long long>(command.resources.size()));
            case Argument::ttl: return visit_number(command.ttl.count());
            case Argument::token: return visit_number(static_cast<long long>(command.fence));
            case Argument::hold_remaining: return visit_positive(command.hold_remaining.count());
            case Argument::ticket: return visit(queue ? queue->ticket : "");
            case Argument::reservation_ttl: return visit_positive(queue ? queue->reservation_ttl.count() : 0);
            case Argument::waited: return visit_number(queue ? queue->waited.count() : 0);
            case Argument::queue_expiry: return visit_number(queue_expiry.count());
            case Argument::may_take: return visit(queue && queue->may_take ? "1" : "0");
            case Argument::former_ticket: return visit(queue ? queue->former : "");
            case Argument::wakes_anyway: return visit(queue && !queue->only_passes_on ? "1" : "");
            case Argument::description:  // the script deletes the description if the text is empty
                return visit(command.ttl > command.ttl.zero() ? command.description : std::string_view{});
            case Argument::counter_expiry:
                return visit_positive(counts ? counters_expiry(recipient.quarantine).count() : 0);
            case Argument::quarantine:
                return visit_positive(std::chrono::microseconds{recipient.quarantine}.count());
        }
    };
    for (const auto argument : form.arguments) visit_argument(argument);
}

/// Appends `command` to `out`.
inline void append(std::string& out, const Command& command, const Recipient& recipient, ScriptForm by) {
    const auto& form = form_of(command, recipient);
    if (form.script)
        return append_words(out, [&](auto visit) { visit_words(form, command, recipient, by, visit); });
    const Digits ttl{command.ttl.count()};
    append(out, {"SET", command.resources.front(), command.owner, "NX", "PX", ttl.view()});
}

/// Appends one command for each node of a round. The command must be the same for all nodes, apart from its
/// QueueTerms, and so must the quarantine. Most nodes then get the same bytes, so the object keeps a copy of
/// them.
class CommandForEachNode {
public:
    void append(std::string& out, const Command& command, const Recipient& recipient, ScriptForm by) {
        const auto& form = form_of(command, recipient);
        const bool may_keep = !uses_queue(command, recipient);
        if (may_keep && &form == form_ && by == by_) {
            out.append(bytes_.data(), size_);
            return;
        }
        const auto before = out.size();
        detail::append(out, command, recipient, by);
        if (!may_keep || out.size() - before > bytes_.size()) return;
        size_ = out.copy(bytes_.data(), bytes_.size(), before);
        form_ = &form;
        by_ = by;
    }

private:
    // Longer commands are made anew for each node. The bytes are not set to zero, which would take time in
    // each round.
    std::array<char, 512> bytes_;
    std::size_t size_ = 0;
    const Form* form_ = nullptr;  // null if nothing is kept
    ScriptForm by_{};
};

}  // namespace redlock::detail
