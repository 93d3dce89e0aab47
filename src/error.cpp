#include <redlock/error.hpp>

#include <string>
#include <system_error>

namespace redlock {
namespace {

class Category final : public std::error_category {
public:
    const char* name() const noexcept override { return "redlock"; }

    std::string message(int value) const override {
        switch (static_cast<Errc>(value)) {
            case Errc::held_by_other: return "held by another";
            case Errc::no_quorum: return "no quorum";
            case Errc::validity_exhausted: return "validity exhausted";
            case Errc::deadline: return "deadline reached";
            case Errc::cancelled: return "cancelled";
            case Errc::not_held: return "not held";
            case Errc::lost: return "lost";
            case Errc::already_held: return "already held";
            case Errc::hold_limit: return "hold limit reached";
            case Errc::timed_out: return "timed out";
            case Errc::connection_failed: return "connection failed";
            case Errc::authentication_failed: return "authentication failed";
            case Errc::permission_denied: return "permission denied";
            case Errc::read_only: return "read-only replica";
            case Errc::loading: return "still loading its data";
            case Errc::out_of_memory: return "out of memory";
            case Errc::quarantined: return "quarantined after a restart";
            case Errc::same_server: return "same server as another node";
            case Errc::backing_off: return "backing off";
            case Errc::wrong_type: return "wrong type of key";
            case Errc::unexpected_reply: return "unexpected reply";
            case Errc::server_busy: return "server busy";
            case Errc::server_error: return "server error";
            case Errc::not_asked: return "not asked";
            case Errc::not_awaited: return "not awaited";
        }
        return "redlock error " + std::to_string(value);
    }

    /// The generic equivalents, so that code that knows only <system_error> can react.
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

}  // namespace

const std::error_category& category() noexcept {
    static const Category instance;
    return instance;
}

}  // namespace redlock
