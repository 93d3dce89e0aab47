// The table of verbs, the kinds of commands. It has one row for each verb, with every property that the
// library needs to know. No other file compares values of Verb, except for acquires() in nodes.hpp, which
// programs with their own Nodes use. docs/development.md says what a new verb needs.
//
// A verb has up to three forms. A form is the script that executes the command (or a plain SET), with the
// keys and the arguments that the script takes, in their order. A form mostly has the name of its script. The
// function form_of() (command_form.hpp) chooses the first form that the verb has and whose condition is met:
//
//     form     | used
//     ---------+-----------------------------------------------------------------------------------------
//     reader   | if the owner is a reader (LockOptions::shared)
//     simple   | for one resource, if the command concerns no other key
//     general  | otherwise
#pragma once

#include <redlock/nodes.hpp>

#include "key_effect.hpp"
#include "scripts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace redlock::detail {

/// How many nodes must grant a command before its round is decided.
enum class VotesNeeded : std::uint8_t { quorum, one, none };

/// How the reply to a script becomes a vote (reply.hpp).
enum class ReplyForm : std::uint8_t {
    yes_or_no,    ///< 1 grants, 0 refuses.
    count,        ///< A positive number grants, and is the number of holders that the node has counted, for
                  ///< the fencing token. 0 refuses.
    raised,       ///< 1 grants, 0 refuses. A negative number refuses; it is the negated count of the node.
    deleted,      ///< As yes_or_no; the number is larger by 2 if a waiter was woken.
    queue_place,  ///< RESERVED grants, WAITING refuses with the place in the queue.
    text,         ///< Any text grants, and is the report's detail. So the round awaits every trusted node.
};

/// A key that a script takes for each resource. The marker (key_names.hpp) is one key for all of them.
enum class KeyKind : std::uint8_t {
    none,
    resource,
    queue,  ///< only if the command uses the queue on this node, see QueueUse
    description,
    readers,
    counter,  ///< unless the command is an acquisition that does not count (VerbProperties::counts)
    marker,   ///< only if the node has a quarantine
};

/// Whether a command reads or changes the queue of waiters.
enum class QueueUse : std::uint8_t {
    never,
    with_a_ticket,  ///< if the command has QueueTerms, and these have the ticket of a waiter
    with_terms,     ///< if the command has QueueTerms (Command::queue)
    always,         ///< in any case, unless the Redis user may not use the key
};

/// An argument of a script. It is empty if it has no meaning for the command, for example the ticket of a
/// client that does not wait. KeyKind says which keys are left out then.
enum class Argument : std::uint8_t {
    none,
    owner,
    resource_count,
    ttl,
    token,           ///< the fencing token (Command::fence)
    hold_remaining,  ///< for how long the resource stays unavailable
    ticket,          ///< of the waiter
    reservation_ttl,
    waited,  ///< how long the waiter has waited
    queue_expiry,
    may_take,       ///< '1' if a free resource may be reserved for the waiter at once
    former_ticket,  ///< the earlier ticket of this waiter, which the ticket replaces; empty if there is none
    wakes_anyway,   ///< '1' unless the release only passes on (QueueTerms::only_passes_on)
    description,
    counter_expiry,
    quarantine,
};

/// A script with the keys and the arguments that it takes. A form without a script is `SET NX PX`.
struct Form {
    const Script* script = nullptr;
    std::array<KeyKind, 5> keys{};
    std::array<Argument, 6> arguments{};
};

struct VerbProperties {
    Verb verb{};
    VotesNeeded votes = VotesNeeded::quorum;
    KeyEffect effect = KeyEffect::none;
    bool counts = false;  ///< The command counts a holder, or raises a count, for the fencing token.
    ReplyForm reply = ReplyForm::yes_or_no;
    QueueUse queue = QueueUse::never;
    const Form* simple = nullptr;  ///< null if there is none; `general` always exists
    const Form* general = nullptr;
    const Form* reader = nullptr;

    /// Returns true if a node whose quarantine has not ended gives no vote on the command. The script then
    /// takes the marker.
    constexpr bool is_declined_in_quarantine() const noexcept {
        return std::ranges::find(general->keys, KeyKind::marker) != general->keys.end();
    }
};

namespace forms {

using Key = KeyKind;
using Arg = Argument;

inline constexpr Form set{};
inline constexpr Form acquire{
    &scripts::acquire,
    {Key::resource, Key::queue, Key::counter, Key::marker},
    {Arg::owner, Arg::resource_count, Arg::ttl, Arg::ticket, Arg::counter_expiry, Arg::quarantine}};
inline constexpr Form reader_acquire{
    &scripts::reader_acquire,
    {Key::resource, Key::readers, Key::counter, Key::marker},
    {Arg::owner, Arg::resource_count, Arg::ttl, Arg::counter_expiry, Arg::quarantine}};

inline constexpr Form compare_and_expire{
    &scripts::compare_and_expire, {Key::resource}, {Arg::owner, Arg::ttl}};
inline constexpr Form extend{&scripts::extend,
                             {Key::resource, Key::marker},
                             {Arg::owner, Arg::resource_count, Arg::ttl, Arg::quarantine}};
inline constexpr Form reader_extend{
    &scripts::reader_extend, {Key::resource, Key::readers, Key::marker}, extend.arguments};

inline constexpr Form compare_and_delete{&scripts::compare_and_delete, {Key::resource}, {Arg::owner}};
inline constexpr Form release{&scripts::release,
                              {Key::resource, Key::queue},
                              {Arg::owner, Arg::resource_count, Arg::hold_remaining, Arg::ticket,
                               Arg::reservation_ttl, Arg::wakes_anyway}};
inline constexpr Form reader_release{&scripts::reader_release, {Key::resource, Key::readers}, {Arg::owner}};

inline constexpr Form raise_counts{
    &scripts::raise_counts,
    {Key::resource, Key::counter, Key::marker},
    {Arg::owner, Arg::resource_count, Arg::token, Arg::counter_expiry, Arg::quarantine}};
inline constexpr Form reader_raise_counts{&scripts::reader_raise_counts,
                                          {Key::resource, Key::readers, Key::counter, Key::marker},
                                          raise_counts.arguments};

inline constexpr Form enter_queue{
    &scripts::enter_queue,
    {Key::resource, Key::queue},
    {Arg::ticket, Arg::reservation_ttl, Arg::waited, Arg::queue_expiry, Arg::may_take, Arg::former_ticket}};
inline constexpr Form describe_holder{
    &scripts::describe_holder, {Key::resource, Key::description}, {Arg::owner, Arg::description}};
inline constexpr Form query_resource{&scripts::query, {Key::resource}, {}};
inline constexpr Form query_all{
    &scripts::query, {Key::resource, Key::queue, Key::description, Key::readers, Key::counter}, {}};
inline constexpr Form exist{&scripts::exist, {Key::resource}, {}};

}  // namespace forms

inline constexpr std::array verbs{
    VerbProperties{.verb = Verb::set_if_absent,
                   .effect = KeyEffect::acquires,
                   .queue = QueueUse::with_a_ticket,
                   .simple = &forms::set,
                   .general = &forms::acquire,
                   .reader = &forms::reader_acquire},
    VerbProperties{.verb = Verb::compare_and_expire,
                   .effect = KeyEffect::extends,
                   .simple = &forms::compare_and_expire,
                   .general = &forms::extend,
                   .reader = &forms::reader_extend},
    VerbProperties{.verb = Verb::compare_and_delete,
                   .effect = KeyEffect::releases,
                   .reply = ReplyForm::deleted,
                   .queue = QueueUse::with_terms,
                   .simple = &forms::compare_and_delete,
                   .general = &forms::release,
                   .reader = &forms::reader_release},
    VerbProperties{.verb = Verb::set_and_count,
                   .effect = KeyEffect::acquires,
                   .counts = true,
                   .reply = ReplyForm::count,
                   .queue = QueueUse::with_a_ticket,
                   .general = &forms::acquire,
                   .reader = &forms::reader_acquire},
    VerbProperties{.verb = Verb::raise_count,
                   .counts = true,
                   .reply = ReplyForm::raised,
                   .general = &forms::raise_counts,
                   .reader = &forms::reader_raise_counts},
    VerbProperties{.verb = Verb::enter_queue,
                   .votes = VotesNeeded::one,
                   .effect = KeyEffect::enqueues,
                   .reply = ReplyForm::queue_place,
                   .queue = QueueUse::with_a_ticket,
                   .general = &forms::enter_queue},
    VerbProperties{.verb = Verb::describe_holder,
                   .votes = VotesNeeded::none,
                   .effect = KeyEffect::describes,
                   .general = &forms::describe_holder},
    VerbProperties{.verb = Verb::query,
                   .votes = VotesNeeded::none,
                   .reply = ReplyForm::text,
                   .queue = QueueUse::always,
                   .simple = &forms::query_resource,
                   .general = &forms::query_all},
    VerbProperties{
        .verb = Verb::exist, .votes = VotesNeeded::none, .reply = ReplyForm::text, .general = &forms::exist},
};

/// Returns the row of the verb.
constexpr const VerbProperties& properties_of(Verb verb) noexcept {
    return verbs[static_cast<std::size_t>(verb)];
}

/// Returns what the command does to the keys on a node.
constexpr KeyEffect effect_of(const Command& command) noexcept {
    const auto effect = properties_of(command.verb).effect;
    // A description with a ttl of 0 is deleted. The command is the same.
    const bool is_over = effect == KeyEffect::describes && command.ttl == command.ttl.zero();
    return is_over ? KeyEffect::undescribes : effect;
}

/// Returns true for the attempt of a woken waiter: it deletes the reservation, and removes the ticket.
constexpr bool deletes_reservation(const Command& command) noexcept {
    return command.queue && acquires(command.verb);
}

static_assert(
    [] {
        for (std::size_t i = 0; i < verbs.size(); ++i)
            if (verbs[i].verb != static_cast<Verb>(i)) return false;
        return true;
    }(),
    "the rows must stand in the order of the enumerators");

}  // namespace redlock::detail
