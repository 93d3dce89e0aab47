#include "support/certificates.hpp"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <utility>

namespace redlock::support {

namespace {

void expect(bool done, const char* what) {
    if (done) return;
    const char* const reason = ERR_reason_error_string(ERR_get_error());
    throw std::runtime_error(std::string{what} + ": " + (reason ? reason : "failed"));
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension{
        X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), &X509_EXTENSION_free};
    expect(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "extension");
}

/// Returns a list such as "DNS:localhost,IP:127.0.0.1".
std::string alternative_names(const std::vector<std::string>& names) {
    std::string result;
    for (const auto& name : names) {
        in6_addr address{};  // large enough for both families
        const bool is_address = ::inet_pton(AF_INET, name.c_str(), &address) == 1 ||
                                ::inet_pton(AF_INET6, name.c_str(), &address) == 1;
        result += (result.empty() ? "" : ",") + std::string{is_address ? "IP:" : "DNS:"} + name;
    }
    return result;
}

/// Creates a PEM file and calls `write(file)` to fill it.
template <class Write>
void write_pem(const std::filesystem::path& path, Write write) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "w"), &std::fclose};
    expect(file && write(file.get()) == 1, path.c_str());
}

}  // namespace

void Authority::Free::operator()(evp_pkey_st* key) const noexcept {
    EVP_PKEY_free(key);
}

void Authority::Free::operator()(x509_st* certificate) const noexcept {
    X509_free(certificate);
}

Authority::Authority(std::filesystem::path directory) : directory_(std::move(directory)), key_(new_key()) {
    std::filesystem::create_directories(directory_);
    certificate_ = sign({}, key_.get(), true);
    write_pem(certificate(), [this](auto* file) { return PEM_write_X509(file, certificate_.get()); });
    std::array<char, 16> link{};  // the name under which OpenSSL looks for the certificate in a directory
    (void)std::snprintf(link.data(), link.size(), "%08lx.0", X509_subject_name_hash(certificate_.get()));
    std::filesystem::create_symlink(certificate().filename(), directory_ / link.data());
}

Authority::~Authority() = default;

CertificateFiles Authority::issue(const Subject& subject) {
    const auto name = std::to_string(++issued_);
    const CertificateFiles files{directory_ / (name + ".crt"), directory_ / (name + ".key")};
    const auto key = new_key();
    const auto certificate = sign(subject, key.get(), false);
    write_pem(files.certificate, [&](auto* file) { return PEM_write_X509(file, certificate.get()); });
    write_pem(files.key, [&](auto* file) {
        const auto* const cipher = subject.password.empty() ? nullptr : EVP_aes_256_cbc();
        auto* const password = reinterpret_cast<unsigned char*>(const_cast<char*>(subject.password.data()));
        const auto length = static_cast<int>(subject.password.size());
        return PEM_write_PrivateKey(file, key.get(), cipher, password, length, nullptr, nullptr);
    });
    return files;
}

auto Authority::new_key() -> Key {
    const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context{
        EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nullptr), &EVP_PKEY_CTX_free};
    EVP_PKEY* key = nullptr;
    expect(context && EVP_PKEY_keygen_init(context.get()) == 1 &&
               EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context.get(), NID_X9_62_prime256v1) == 1 &&
               EVP_PKEY_keygen(context.get(), &key) == 1,
           "key");
    return Key{key};
}

auto Authority::sign(const Subject& subject, evp_pkey_st* key, bool is_authority) -> Certificate {
    Certificate result{X509_new()};
    expect(result != nullptr, "certificate");
    auto* const certificate = result.get();
    auto* const issuer = is_authority ? certificate : certificate_.get();
    const auto title = directory_.filename().string() + (is_authority ? "" : " " + std::to_string(issued_));
    X509_set_version(certificate, 2);  // X.509 v3
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), issued_ + 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), static_cast<long>(subject.valid_from.count()));
    X509_gmtime_adj(X509_getm_notAfter(certificate), static_cast<long>(subject.valid_until.count()));
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(title.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
    X509_set_pubkey(certificate, key);
    add_extension(certificate, issuer, NID_basic_constraints, is_authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (!subject.names.empty())
        add_extension(certificate, issuer, NID_subject_alt_name, alternative_names(subject.names));
    expect(X509_sign(certificate, key_.get(), EVP_sha256()) > 0, "signature");
    return result;
}

}  // namespace redlock::support
