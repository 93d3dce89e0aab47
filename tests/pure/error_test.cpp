// Errc in the std::error_code machinery: its messages, its generic equivalents, the table of causes (D7).
#include "world.hpp"

#include <redlock/detail/causes.hpp>

#include <set>
#include <string>

namespace redlock::test {
namespace {

static_assert(std::is_error_code_enum_v<Errc>);

constexpr Errc outcomes[] = {Errc::held_by_other, Errc::no_quorum,    Errc::validity_exhausted,
                             Errc::deadline,      Errc::cancelled,    Errc::not_held,
                             Errc::lost,          Errc::already_held, Errc::hold_limit};

std::vector<Errc> all() {
    std::vector<Errc> result(std::begin(outcomes), std::end(outcomes));
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

// 0 would be success.
TEST(Errc, IsAlwaysAnError) {
    for (const auto errc : all()) EXPECT_TRUE(static_cast<bool>(make_error_code(errc)));
}

// A log reader tells them apart, and none falls through to a number.
TEST(Errc, HasAMessageOfItsOwnForEach) {
    std::set<std::string> messages;
    for (const auto errc : all()) {
        const auto message = make_error_code(errc).message();
        EXPECT_THAT(message, Not(HasSubstr("redlock error")));
        EXPECT_TRUE(messages.insert(message).second) << message << " twice";
    }
}

TEST(Errc, HasAMessageForNumbersUnknown) {
    EXPECT_EQ(category().message(9999), "redlock error 9999");
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

// The numbers of the causes follow one another: a cause without a row, or with two, breaks it.
TEST(ACause, HasOneRow) {
    int next = static_cast<int>(Errc::timed_out);
    for (const auto& cause : detail::causes) EXPECT_EQ(static_cast<int>(cause.code), next++) << cause.message;
    EXPECT_EQ(next, static_cast<int>(Errc::not_awaited) + 1);
}

// D7: a wrong password, a missing permission, a replica, a foreign key, a second address of one server, an
// error unknown to us stay until an operator acts.
TEST(ACause, IsTransientWhereWaitingCanCureIt) {
    const std::set<Errc> permanent{
        Errc::authentication_failed, Errc::permission_denied, Errc::read_only, Errc::wrong_type,
        Errc::same_server,           Errc::server_error};
    for (const auto& cause : detail::causes)
        EXPECT_EQ(is_transient(cause.code), !permanent.contains(cause.code)) << cause.message;
}

TEST(ACause, OfAnotherCategoryMayPass) {
    EXPECT_TRUE(is_transient(std::make_error_code(std::errc{static_cast<int>(Errc::server_error)})));
}

// What the library itself decides calls for nobody.
TEST(ACause, HasAdviceWhereTheNodeIsAtFault) {
    const std::set<Errc> ours{Errc::backing_off, Errc::not_asked, Errc::not_awaited};
    for (const auto& cause : detail::causes)
        EXPECT_EQ(cause.advice.empty(), ours.contains(cause.code)) << cause.message;
}

}  // namespace
}  // namespace redlock::test
