#include "exit_status.hpp"

#include <redlock/error.hpp>

namespace redlock::tool::exit_status {

int of(std::error_code error, int conflict) noexcept {
    if (!error) return 0;
    if (error == Errc::held_by_other) return conflict;
    if (error == Errc::lost || error == Errc::not_held || error == Errc::hold_limit) return lost;
    return error.category() == category() ? no_quorum : internal;
}

}  // namespace redlock::tool::exit_status
