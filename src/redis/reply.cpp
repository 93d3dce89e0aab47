#include "redis/reply.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace redlock::wire {

Errc cause_of(std::string_view first_word) noexcept {
    using Row = std::pair<std::string_view, Errc>;
    static constexpr std::array table{
        Row{"NOAUTH", Errc::authentication_failed},
        Row{"WRONGPASS", Errc::authentication_failed},
        Row{"NOPERM", Errc::permission_denied},
        Row{"READONLY", Errc::read_only},
        Row{"LOADING", Errc::loading},
        Row{"OOM", Errc::out_of_memory},
        Row{"WRONGTYPE", Errc::wrong_type},
        Row{"BUSY", Errc::server_busy},
        Row{"TRYAGAIN", Errc::server_busy},
        Row{"MASTERDOWN", Errc::server_busy},
        Row{"CLUSTERDOWN", Errc::server_busy},
        Row{"MISCONF", Errc::server_busy},
        Row{"NOREPLICAS", Errc::server_busy},
    };
    const auto row = std::ranges::find(table, first_word, &Row::first);
    return row == table.end() ? Errc::server_error : row->second;
}

Errc cause_of(const Reply& error) noexcept {
    const auto cause = cause_of(error.first_word());
    const auto says = [&](std::string_view words) { return error.text.find(words) != std::string::npos; };
    const bool forbidden = says("can't run this command") || says("ACL failure in script");
    return cause == Errc::server_error && forbidden ? Errc::permission_denied : cause;
}

detail::NodeVote to_vote(const Command& command, const Reply& reply, bool scripted) noexcept {
    using Kind = Reply::Kind;
    if (reply.kind == Kind::error) return {Vote::unknown, cause_of(reply)};
    if (!scripted) {
        if (reply.kind == Kind::status && reply.text == "OK") return {Vote::granted};
        if (reply.kind == Kind::nil) return {Vote::refused};
    } else if (reply.kind == Kind::integer) {
        const bool counted = command.verb == Verb::set_and_count && reply.integer > 0;
        if (counted) return {Vote::granted, {}, static_cast<std::uint64_t>(reply.integer)};
        const bool absurd = command.verb == Verb::raise_count && reply.integer < 0;
        if (absurd) return {Vote::refused, {}, 0 - static_cast<std::uint64_t>(reply.integer)};
        if (reply.integer == 1) return {Vote::granted};
        if (reply.integer == 0) return {Vote::refused};
    } else if (reply.kind == Kind::status && reply.first_word() == "QUARANTINED") {
        return {Vote::unknown, Errc::quarantined};
    }
    return {Vote::unknown, Errc::unexpected_reply};
}

std::string_view line_of_info(std::string_view info, std::string_view name) noexcept {
    const auto begin = info.find(name);
    if (begin == info.npos) return {};
    const auto rest = info.substr(begin + name.size());
    return rest.substr(0, rest.find_first_of("\r\n"));
}

std::string printable(std::string_view words) {
    constexpr std::size_t longest = 120;
    std::string result{words.substr(0, longest)};
    std::ranges::replace_if(
        result, [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
    if (words.size() > longest) result += "...";
    return result;
}

}  // namespace redlock::wire
