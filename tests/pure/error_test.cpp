// Errc as a std::error_code: its messages, its generic equivalents, and the table of causes (D7).
#include "world.hpp"

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "wire/causes.hpp"

namespace redlock::test::error_test {
namespace {

static_assert(std::is_error_code_enum_v<Errc>);

std::vector<Errc> all() {
    std::vector<Errc> result;
    for (const auto& outcome : detail::outcomes) result.push_back(outcome.code);
    for (const auto& cause : detail::causes) result.push_back(cause.code);
    return result;
}

TEST(Errc, BelongsToTheCategoryRedlock) {
    EXPECT_STREQ(category().name(), "redlock");
    const std::error_code code = Errc::no_quorum;
    EXPECT_EQ(&code.category(), &category());
    EXPECT_EQ(code, Errc::no_quorum);
    EXPECT_NE(code, Errc::lost);
}

// The messages are distinct for readers of logs, and no code falls back to a number.
TEST(Errc, HasADistinctMessageForEachCode) {
    std::set<std::string> messages;
    for (const auto errc : all()) {
        const auto message = make_error_code(errc).message();
        EXPECT_THAT(message, Not(HasSubstr("redlock error")));
        EXPECT_TRUE(messages.insert(message).second) << message << " twice";
    }
}

/// Extracts the name as the compiler prints it: "... [with redlock::Errc code = redlock::Errc::lost; ...".
template <Errc code>
constexpr std::string_view enumerator() {
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find("Errc::") + 6);
    return text.substr(0, text.find_first_of("];"));
}

template <const auto& table, std::size_t... row>
void expect_enumerators(std::index_sequence<row...> /*all*/) {
    const std::array enumerators{enumerator<table[row].code>()...};
    for (std::size_t i = 0; i < table.size(); ++i) EXPECT_EQ(table[i].name, enumerators[i]);
}

// Programs read these names in the JSON of the command.
TEST(Errc, IsNamedByItsEnumerator) {
    expect_enumerators<detail::outcomes>(std::make_index_sequence<detail::outcomes.size()>{});
    expect_enumerators<detail::causes>(std::make_index_sequence<detail::causes.size()>{});
    EXPECT_EQ(detail::name_of(Errc::lost), "lost");
    EXPECT_EQ(detail::name_of(Errc::loading), "loading");
}

TEST(Errc, HasAMessageButNoNameForAnUnknownNumber) {
    EXPECT_EQ(category().message(9999), "redlock error 9999");
    EXPECT_EQ(detail::name_of(Errc{9999}), "");
}

// Code that knows only <system_error> can react.
TEST(Errc, MapsToTheGenericConditions) {
    const std::pair<Errc, std::errc> table[] = {
        {Errc::held_by_other, std::errc::device_or_resource_busy},
        {Errc::already_held, std::errc::resource_deadlock_would_occur},
        {Errc::not_held, std::errc::operation_not_permitted},
        {Errc::deadline, std::errc::timed_out},
        {Errc::timed_out, std::errc::timed_out},
        {Errc::cancelled, std::errc::operation_canceled},
        {Errc::out_of_memory, std::errc::not_enough_memory},
    };
    for (const auto& [ours, generic] : table)
        EXPECT_EQ(make_error_code(ours), generic) << make_error_code(ours).message();
    EXPECT_NE(make_error_code(Errc::lost), std::errc::timed_out);
}

// The codes are consecutive, from 1, because 0 would be success. A code without a row, or with two, would
// break the sequence.
TEST(Errc, HasExactlyOneTableRowForEachCode) {
    int next = 1;
    for (const auto& outcome : detail::outcomes)
        EXPECT_EQ(static_cast<int>(outcome.code), next++) << outcome.message;
    EXPECT_EQ(next, static_cast<int>(Errc::hold_limit) + 1);
    next = static_cast<int>(Errc::timed_out);
    for (const auto& cause : detail::causes) EXPECT_EQ(static_cast<int>(cause.code), next++) << cause.message;
    EXPECT_EQ(next, static_cast<int>(Errc::not_awaited) + 1);
}

// D7: a wrong password, a missing permission, a replica, a foreign key, a second address of one server, and
// another known error such as an unknown command remain until an operator acts.
TEST(ACause, IsTransientIfWaitingCanCureIt) {
    const std::set<Errc> permanent{
        Errc::authentication_failed, Errc::permission_denied, Errc::read_only, Errc::wrong_type,
        Errc::same_server,           Errc::server_error};
    for (const auto& cause : detail::causes)
        EXPECT_EQ(is_transient(cause.code), !permanent.contains(cause.code)) << cause.message;
}

TEST(ACause, IsTransientIfItIsOfAnotherCategory) {
    EXPECT_TRUE(is_transient(std::make_error_code(std::errc{static_cast<int>(Errc::server_error)})));
}

// The causes that the library itself decides on need no operator.
TEST(ACause, HasAdviceIfTheNodeIsAtFault) {
    const std::set<Errc> ours{Errc::backing_off, Errc::not_asked, Errc::not_awaited};
    for (const auto& cause : detail::causes)
        EXPECT_EQ(cause.advice.empty(), ours.contains(cause.code)) << cause.message;
}

}  // namespace
}  // namespace redlock::test::error_test
