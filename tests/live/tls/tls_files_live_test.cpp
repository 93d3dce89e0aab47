// Rule A10 for TLS: the constructor of the nodes rejects unusable files, and names the node and the field. No
// server is needed.
#include "live/descriptor_limit.hpp"
#include "live/forked_child.hpp"
#include "tls_world.hpp"

#include <fstream>

namespace redlock::test::tls_files_live_test {
namespace {

struct TlsFiles : TlsWorld {
    /// Returns the message of the constructor's exception, or an empty text if there is none.
    static std::string refusal(const Endpoint& endpoint) {
        try {
            RedisNodes nodes{std::vector{endpoint}, patient()};
            return {};
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
    }

    std::string written(const std::string& name, const std::string& text) {
        const auto path = directory / name;
        std::ofstream{path} << text;
        return path;
    }

    Endpoint endpoint{.host = "127.0.0.1",
                      .port = 6379,
                      .tls = {.enabled = true,
                              .ca_file = authority.certificate(),
                              .certificate = good.certificate,
                              .key = good.key}};
};

TEST_F(TlsFiles, AreRejectedWithTheNameOfTheFieldIfTheyAreInvalid) {
    const auto garbage = written("garbage", "no PEM at all\n");
    const auto empty = written("empty", "");
    const auto missing = (directory / "missing").string();
    for (auto [field, name] :
         {std::pair{&Tls::ca_file, "tls.ca_file"}, std::pair{&Tls::certificate, "tls.certificate"},
          std::pair{&Tls::key, "tls.key"}})
        for (const std::string& file : {garbage, empty, missing, directory.path().string()}) {
            auto broken = endpoint;
            broken.tls.*field = file;
            EXPECT_THAT(refusal(broken), HasSubstr(name)) << file;
            EXPECT_THAT(refusal(broken), HasSubstr("127.0.0.1:6379"));
            if (file == missing) {
                EXPECT_THAT(refusal(broken), HasSubstr("No such file or directory"));
            }
        }
}

/// While an object exists, the effective user is not root, which may read everything.
class WithoutPrivileges : detail::NotCopied {
public:
    WithoutPrivileges() { become(65'534); }
    ~WithoutPrivileges() { become(0); }

private:
    static void become(uid_t user) {
        if (::getuid() != 0) return;
        EXPECT_EQ(::seteuid(user), 0);
    }
};

TEST_F(TlsFiles, AreRejectedWithTheNameOfTheFieldWithoutReadPermission) {
    std::filesystem::permissions(directory.path(), std::filesystem::perms{0755});
    std::filesystem::permissions(good.key, std::filesystem::perms::none);
    const WithoutPrivileges privileges;
    EXPECT_THAT(refusal(endpoint), HasSubstr("tls.key"));
}

TEST_F(TlsFiles, MustBeGivenInPairs) {
    auto lonely = endpoint;
    lonely.tls.key.clear();
    EXPECT_THAT(refusal(lonely), HasSubstr("tls.certificate and key"));
    lonely = endpoint;
    lonely.tls.certificate.clear();
    EXPECT_THAT(refusal(lonely), HasSubstr("tls.certificate and key"));
}

TEST_F(TlsFiles, AreRejectedIfTheyDoNotBelongTogether) {
    endpoint.tls.key = authority.issue({}).key;
    EXPECT_THAT(refusal(endpoint), HasSubstr("tls.key"));
}

TEST_F(TlsFiles, AreRejectedWithTheNameOfTheFieldIfAPathHasANul) {
    for (auto [field, name] :
         {std::pair{&Tls::ca_file, "tls.ca_file"}, std::pair{&Tls::certificate, "tls.certificate"},
          std::pair{&Tls::key, "tls.key"}, std::pair{&Tls::server_name, "tls.server_name"}}) {
        auto broken = endpoint;
        broken.tls.*field += std::string{"\0.old", 5};
        EXPECT_THAT(refusal(broken), HasSubstr(name));
        EXPECT_THAT(refusal(broken), HasSubstr("NUL"));
    }
}

// A name that no certificate can contain is rejected before there is a connection.
TEST_F(TlsFiles, AreRejectedWithAServerNameThatIsTooLong) {
    endpoint.tls.server_name = std::string(255, 's');
    EXPECT_EQ(refusal(endpoint), "");
    endpoint.tls.server_name += 's';
    EXPECT_THAT(refusal(endpoint), HasSubstr("tls.server_name is longer than 255 bytes"));
    endpoint.tls.server_name.clear();
    endpoint.host = std::string(256, 'h');
    EXPECT_THAT(refusal(endpoint), HasSubstr("host is longer than 255 bytes"));
}

// E. A key with a password is rejected. The library neither asks for the password on a terminal nor waits for
// input.
TEST_F(TlsFiles, AreRejectedWithoutAPromptIfTheyNeedAPassword) {
    const auto locked = authority.issue({.password = "open sesame"});
    endpoint.tls.certificate = locked.certificate;
    endpoint.tls.key = locked.key;
    int silence[2];
    ASSERT_EQ(::pipe(silence), 0);
    ForkedChild child{[&](auto report) {
        ::setsid();                        // no terminal
        ::dup2(silence[0], STDIN_FILENO);  // and no input
        const auto words = refusal(endpoint);
        report(words.find("tls.key") != std::string::npos ? "refused" : words);
    }};
    EXPECT_EQ(child.receive(), "refused");
    ::close(silence[0]);
    ::close(silence[1]);
}

// D10. The files are read once. A child of fork() that can no longer read them still locks.
TEST_F(TlsFiles, AreNotReadAgainAfterAFork) {
    TlsServer server{good, authority, Clients::show_a_certificate};
    RedisNodes nodes{std::vector{server.endpoint(authority, authority.issue({}))}, patient()};
    ASSERT_THAT((Lock{nodes, the_resource, no_retry()}.acquire()), Succeeds());
    std::filesystem::remove_all(directory.path());
    ForkedChild child{[&](auto report) {
        Lock lock{nodes, the_resource, no_retry()};
        report(lock.acquire() ? "acquired" : "not acquired");
        (void)lock.release();
    }};
    EXPECT_EQ(child.receive(), "acquired");
}

// OpenSSL opens the file of the authority in SSL_CERT_DIR when it verifies the certificate of the server.
TEST_F(TlsFiles, BlameNoServerIfThisProcessHasNoDescriptorForTheAuthority) {
    TlsServer server{good, authority};
    ForkedChild child{[&](auto report) {
        ::setenv("SSL_CERT_DIR", authority.certificate().parent_path().c_str(), 1);
        auto at_server = server.endpoint(authority);
        at_server.tls.ca_file.clear();
        FailureCount observer;
        RedisNodes nodes{std::vector{at_server}, {.node_timeout = 5s, .observer = &observer}};
        Lock lock{nodes, the_resource, no_retry()};
        rlimit before{};
        (void)::getrlimit(RLIMIT_NOFILE, &before);
        limit_descriptors(1);  // for the socket
        const auto result = lock.acquire();
        (void)::setrlimit(RLIMIT_NOFILE, &before);
        report(result.nodes()[0].cause.message() + ", " + std::to_string(observer.failures) + " failures, " +
               result.nodes()[0].detail);
        report(lock.acquire() ? "acquired" : "not acquired");
    }};
    EXPECT_THAT(child.receive(), testing::StartsWith("connection failed, 0 failures"));
    EXPECT_EQ(child.receive(), "acquired");
}

}  // namespace
}  // namespace redlock::test::tls_files_live_test
