// Certificates for tests, good and bad, made on the spot by libcrypto.
//
//     Authority authority{directory / "ca"};
//     const auto server = authority.issue({.names = {"localhost", "127.0.0.1"}});
//     RedisConfig{}.line("tls-cert-file " + server.certificate.string()) ...
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

struct evp_pkey_st;
struct x509_st;

namespace redlock::support {

/// Two PEM files.
struct CertificateFiles {
    std::filesystem::path certificate;
    std::filesystem::path key;
};

/// What a certificate is issued for.
struct Subject {
    std::vector<std::string> names{};                          ///< host names and IPv4 addresses
    std::chrono::seconds valid_from = -std::chrono::hours{1};  ///< seen from now
    std::chrono::seconds valid_until = std::chrono::hours{1};
    std::string password{};  ///< of the key's file; none if empty
};

/// An authority that signs whatever it is asked to.
class Authority {
public:
    /// Writes its files into `directory`, which it makes. Throws std::runtime_error with OpenSSL's reason.
    explicit Authority(std::filesystem::path directory);
    ~Authority();
    Authority(const Authority&) = delete;
    Authority& operator=(const Authority&) = delete;

    /// The PEM file to trust it by.
    std::filesystem::path certificate() const { return directory_ / "ca.crt"; }

    /// A certificate of its own for `subject`, with a fresh key.
    CertificateFiles issue(const Subject& subject);

private:
    struct Free {
        void operator()(evp_pkey_st* key) const noexcept;
        void operator()(x509_st* certificate) const noexcept;
    };
    using Key = std::unique_ptr<evp_pkey_st, Free>;
    using Certificate = std::unique_ptr<x509_st, Free>;

    static Key new_key();
    Certificate sign(const Subject& subject, evp_pkey_st* key, bool is_authority);

    std::filesystem::path directory_;
    Key key_;
    Certificate certificate_{};
    int issued_ = 0;
};

}  // namespace redlock::support
