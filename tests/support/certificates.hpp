// Certificates for tests, valid and invalid ones, created on the spot by libcrypto.
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

/// The two PEM files of a certificate.
struct CertificateFiles {
    std::filesystem::path certificate;
    std::filesystem::path key;
};

/// The properties of a certificate to be issued.
struct Subject {
    std::vector<std::string> names{};                          ///< host names and addresses
    std::chrono::seconds valid_from = -std::chrono::hours{1};  ///< relative to now
    std::chrono::seconds valid_until = std::chrono::hours{1};
    std::string password{};  ///< of the key file; empty: none
};

/// A certificate authority that signs every request.
class Authority {
public:
    /// Creates `directory` and writes its files there. The directory can be the SSL_CERT_DIR of a client that
    /// trusts this authority. Throws std::runtime_error with the error message of OpenSSL.
    explicit Authority(std::filesystem::path directory);
    ~Authority();
    Authority(const Authority&) = delete;
    Authority& operator=(const Authority&) = delete;

    /// Returns the PEM file that makes a client trust this authority.
    std::filesystem::path certificate() const { return directory_ / "ca.crt"; }

    /// Issues a certificate for `subject`, with a fresh key.
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
