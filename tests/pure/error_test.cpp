// Errc in the std::error_code machinery: its words, its generic equivalents, what waiting can cure (D7).
#include "world.hpp"

#include <set>
#include <string>

namespace redlock::test {
namespace {

static_assert(std::is_error_code_enum_v<Errc>);

constexpr Errc outcomes[] = {Errc::held_by_other, Errc::no_quorum,    Errc::validity_exhausted,
                             Errc::deadline,      Errc::cancelled,    Errc::not_held,
                             Errc::lost,          Errc::already_held, Errc::hold_limit};

constexpr Errc transient_causes[] = {
    Errc::timed_out,   Errc::connection_failed, Errc::loading,     Errc::out_of_memory, Errc::quarantined,
    Errc::backing_off, Errc::unexpected_reply,  Errc::server_busy, Errc::not_asked,     Errc::not_awaited};

constexpr Errc permanent_causes[] = {Errc::authentication_failed, Errc::permission_denied, Errc::read_only,
                                     Errc::wrong_type, Errc::server_error};

std::vector<Errc> all() {
    std::vector<Errc> result;
    for (const auto& group : {std::span<const Errc>{outcomes}, std::span<const Errc>{transient_causes},
                              std::span<const Errc>{permanent_causes}})
        result.insert(result.end(), group.begin(), group.end());
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

// D7.
TEST(ACause, IsTransientWhereWaitingCanCureIt) {
    for (const auto cause : transient_causes)
        EXPECT_TRUE(is_transient(cause)) << make_error_code(cause).message();
}

// D7.
TEST(ACause, IsPermanentWhereAnOperatorMustAct) {
    for (const auto cause : permanent_causes)
        EXPECT_FALSE(is_transient(cause)) << make_error_code(cause).message();
}

TEST(AnError, IsASystemError) {
    const Error error{Errc::no_quorum, "no quorum"};
    const std::system_error& base = error;
    EXPECT_EQ(base.code(), Errc::no_quorum);
}

}  // namespace
}  // namespace redlock::test
