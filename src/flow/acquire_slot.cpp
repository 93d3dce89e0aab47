// The attempts of an acquire() of a semaphore.
#include "acquire.hpp"

#include "../lock/random_number.hpp"

#include <cstdint>
#include <system_error>
#include <vector>

namespace redlock::flow {
namespace {

/// Returns for each slot whether it is certainly taken: less than a majority of the nodes may be free for it.
/// `votes` are the answers to Verb::exist.
std::vector<bool> taken_slots(const Tally& votes, std::size_t size) {
    std::vector<std::size_t> keys(size);
    for (const auto& report : votes.reports())
        if (report.vote == Vote::granted && report.detail.size() == size)
            for (std::size_t slot = 0; slot < size; ++slot)
                if (report.detail[slot] == '1') ++keys[slot];
    std::vector<bool> taken;
    taken.reserve(size);
    for (const auto count : keys) taken.push_back(votes.size() - count < quorum(votes.size()));
    return taken;
}

}  // namespace

Flow Acquire::attempt_slots() {
    const auto slots = request_.resources;
    attempt_.reset();
    std::uint64_t number = 0;
    auto error = draw(number, entropy_);
    if (error) co_return error;
    const auto first = static_cast<std::size_t>(number % slots.size());
    {
        const auto trying = try_slot(first);
        error = co_await trying;
    }
    if (error != Errc::held_by_other || slots.size() == 1) co_return error;
    const Request query{.command = {.verb = Verb::exist, .resources = slots}};
    auto votes = blank_votes();
    co_await ask(query, round_limits_, *votes);
    const auto taken = taken_slots(*votes, slots.size());
    votes.reset();
    for (std::size_t i = 1; i < slots.size() && error == Errc::held_by_other; ++i) {
        const auto slot = (first + i) % slots.size();
        if (taken[slot]) continue;
        const auto trying = try_slot(slot);
        error = co_await trying;
    }
    co_return error;
}

/// Returns the flow that tries to acquire this slot once.
Flow Acquire::try_slot(std::size_t slot) {
    slot_ = slot;
    slot_request_.resources = request_.resources.subspan(slot, 1);
    if (attempt_) *round_ = {.tally = nodes().blank_tally()};
    return try_to_acquire(slot_request_);
}

}  // namespace redlock::flow
