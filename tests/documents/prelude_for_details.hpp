// The names that the examples in detail/ use, see prelude.hpp.
#pragma once

#include <redlock/clock.hpp>

#include "round/quorum_round.hpp"

namespace documents {

extern redlock::Clock& clock;
extern redlock::detail::QuorumRound round;
void join(std::size_t node);
void end_and_leave(const redlock::detail::QuorumRound::Step& step);
void wait(redlock::Clock::time_point until);

}  // namespace documents
