// The error category of the library. The messages and the question whether a failure is transient come from
// the tables in causes.hpp.
#include <redlock/error.hpp>

#include "../wire/causes.hpp"

namespace redlock {
namespace {

class Category final : public std::error_category {
public:
    const char* name() const noexcept override { return "redlock"; }

    std::string message(int value) const override {
        const auto code = static_cast<Errc>(value);
        if (const auto* const row = detail::find_error(code)) return std::string{row->message};
        return "redlock error " + std::to_string(value);
    }

    /// Returns the generic equivalent of an error, so that code that only knows <system_error> can react to
    /// it.
    std::error_condition default_error_condition(int value) const noexcept override {
        switch (static_cast<Errc>(value)) {
            case Errc::held_by_other: return std::errc::device_or_resource_busy;
            case Errc::already_held: return std::errc::resource_deadlock_would_occur;
            case Errc::not_held: return std::errc::operation_not_permitted;
            case Errc::deadline:
            case Errc::timed_out: return std::errc::timed_out;
            case Errc::cancelled: return std::errc::operation_canceled;
            case Errc::out_of_memory: return std::errc::not_enough_memory;
            default: return {value, *this};
        }
    }
};

constinit const Category the_category;

}  // namespace

const std::error_category& category() noexcept {
    return the_category;
}

bool is_transient(const std::error_code& cause) noexcept {
    if (cause.category() != category()) return true;
    const auto* const row = detail::find_error(static_cast<Errc>(cause.value()));
    return !row || row->lasting == detail::Lasting::transient;
}

}  // namespace redlock
