// What the constructor of TlsContext rejects (D12), whoever calls it.
#include "redis/tls.hpp"

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>

namespace redlock::tls_context_test {
namespace {

std::string refusal_of(const Endpoint& endpoint) {
    try {
        const TlsContext context{endpoint};
        return {};
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
}

// Without a name, OpenSSL would accept a certificate for any name.
TEST(TlsContext, RejectsAnEmptyServerName) {
    Endpoint endpoint{.host = "db"};
    endpoint.tls.enabled = true;
    const auto refusal = refusal_of(endpoint);
    if (refusal.find("without OpenSSL") != refusal.npos) GTEST_SKIP() << "a build without OpenSSL";
    EXPECT_EQ(refusal, "");
    for (const auto* const host : {"", "."}) {
        endpoint.host = host;
        EXPECT_THAT(refusal_of(endpoint), testing::HasSubstr("tls.server_name is empty")) << host;
    }
    endpoint.tls.server_name = "db";
    EXPECT_EQ(refusal_of(endpoint), "");
}

}  // namespace
}  // namespace redlock::tls_context_test
